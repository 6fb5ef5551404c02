//! Whole files to read.

use raidlab_live::files::{self, FileSource, FilesConfig, FilesResult, Numbers, SyncRule};
use raidlab_live::LiveError;
use raidlab_load::SizeSpec;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// So many files, each synchronised, gone when the run is over.
pub(crate) fn made(directories: Vec<PathBuf>, sizes: SizeSpec, count: u64) -> FileSource {
    FileSource::Made {
        directories,
        sizes,
        numbers: Numbers::Drawn,
        count: Some(count),
        total_bytes: None,
        sync: SyncRule::Each,
        keep: false,
    }
}

/// Read once by one reader, through the page cache.
pub(crate) fn config(files: FileSource) -> FilesConfig {
    let text = r#"{"seed": 1, "files": {"kind": "list", "paths": []}, "block_bytes": 32768, "io": "buffered"}"#;
    FilesConfig { files, ..serde_json::from_str(text).expect("a cell") }
}

/// Runs without watching; nothing may stop it.
pub(crate) fn run(config: &FilesConfig) -> FilesResult {
    let result = files::run(config, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(result.stopped_by, None);
    result
}

/// Why it does not run.
pub(crate) fn error(config: &FilesConfig) -> LiveError {
    files::run(config, &mut |_| ControlFlow::Continue(())).expect_err("must not run")
}
