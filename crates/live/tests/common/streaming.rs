//! Streams to run.

use raidlab_live::streams::{self, EndpointSpec, LiveStreamSpec, StreamsConfig, StreamsResult};
use raidlab_live::LiveError;
use raidlab_types::{KIB, MIB};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// 2 MiB in blocks of 64 KiB, two of them under way.
pub(crate) fn stream(name: &str, from: EndpointSpec, to: EndpointSpec) -> LiveStreamSpec {
    LiveStreamSpec {
        name: name.into(),
        source: from,
        sink: to,
        block_bytes: 64 * KIB,
        bytes: Some(2 * MIB),
        count: None,
        rate_mb_s: None,
        buffers: 2,
    }
}

pub(crate) fn config(streams: Vec<LiveStreamSpec>) -> StreamsConfig {
    StreamsConfig { streams, ..serde_json::from_str(r#"{"seed": 1, "streams": []}"#).expect("a cell") }
}

pub(crate) fn memory() -> EndpointSpec {
    EndpointSpec::Memory { size_bytes: MIB }
}

pub(crate) fn file(path: PathBuf) -> EndpointSpec {
    EndpointSpec::File { path, offset_bytes: 0, buffered: false }
}

/// Runs without watching, if it may.
pub(crate) fn try_run(config: &StreamsConfig) -> Result<StreamsResult, LiveError> {
    streams::run(config, &mut |_| ControlFlow::Continue(()))
}

/// Runs without watching; nothing may stop it.
pub(crate) fn run(config: &StreamsConfig) -> StreamsResult {
    let result = try_run(config).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(result.stopped_by, None);
    assert!(!result.interrupted);
    result
}

/// Why it does not run.
pub(crate) fn error(config: &StreamsConfig) -> LiveError {
    try_run(config).expect_err("must not run")
}
