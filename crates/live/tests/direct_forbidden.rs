//! The direct engine where the system forbids something: io_uring, locked memory, polled completions, the device's space.
//!
//! Each test takes a right away from its own thread, which hands it on to the threads it starts; the limit on locked memory
//! is the process's, which is why these tests have one of their own.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;

use common::loops::Loop;
use common::{count, direct, run_direct, seconds, try_direct, workload, Place};
use raidlab_live::direct::{DirectConfig, Interface};
use raidlab_live::{LiveError, TargetSpec};
use raidlab_load::{AddressSpec, SizeSpec, WorkloadSpec};
use raidlab_types::{KIB, MIB};
use std::process::Command;

/// From here on `io_uring_setup` fails with EPERM in this thread, as in a container whose seccomp profile forbids it.
fn forbid_io_uring() {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let number = libc::SYS_io_uring_setup as u32;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        step((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, 0),
        step((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, number),
        step((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, refuse),
        step((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is read during the call, and says what this thread may do.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn without_io_uring_threads_do_the_same_and_the_result_says_so() {
    let place = Place::new();
    let targets = place.files(1, 4 * MIB);
    run_direct(&DirectConfig { measure: count(1), ..direct(targets.clone()) });
    forbid_io_uring();
    let result = run_direct(&direct(targets.clone()));
    assert_eq!((result.recorder.all().requests, result.engine.interface), (2000, "threads"));
    let warning = result.checks.iter().find(|check| check.name == "threads_instead_of_io_uring").expect("a warning");
    assert!(warning.evidence.contains("16 threads"), "{warning:?}");
    assert!(warning.evidence.contains("io_uring is not available here"), "{warning:?}");
    let config = DirectConfig { interface: Interface::IoUring, ..direct(targets) };
    match try_direct(&config) {
        Err(LiveError::Unsupported { message, .. }) => {
            assert!(message.contains("io_uring is not available"), "{message}")
        }
        other => panic!("{other:?}"),
    }
}

/// From here on this thread may lock no more memory than the limit: enough for the ring, too little for buffers.
fn limit_locked_memory() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let mut header = Header { version: VERSION_3, pid: 0 };
    // Effective, permitted, inheritable; twice.
    let mut sets = [0u32; 6];
    let limit = libc::rlimit { rlim_cur: MIB, rlim_max: MIB };
    // SAFETY: the structures are those of the calls.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_capget, &mut header, sets.as_mut_ptr()), 0);
        sets[0] &= !(1 << CAP_IPC_LOCK);
        assert_eq!(libc::syscall(libc::SYS_capset, &mut header, sets.as_ptr()), 0);
        assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit), 0);
    }
}

#[test]
fn beyond_the_limit_on_locked_memory_it_runs_all_the_same_and_says_so() {
    let place = Place::new();
    limit_locked_memory();
    let result = run_direct(&direct(place.files(1, 4 * MIB)));
    assert_eq!((result.recorder.all().requests, result.engine.interface), (2000, "io_uring"));
    assert!(!result.engine.registered_buffers);
    assert!(result.checks.iter().any(|check| check.name == "buffers_not_registered"), "{:?}", result.checks);
}

#[test]
fn a_target_that_cannot_be_polled_is_named_before_the_run() {
    need_loops!();
    let place = Place::new();
    let device = Loop::new(&place, "polled", 4 * MIB, 4096);
    let spec = TargetSpec::Block { path: device.device().into(), destroy: false };
    let reads = workload(1.0, SizeSpec::Fixed { bytes: 4 * KIB });
    let config = DirectConfig { poll_completions: true, workload: reads, ..direct(vec![spec]) };
    match try_direct(&config) {
        Err(LiveError::Unsupported { key, message }) => {
            assert_eq!(key, "poll_completions");
            assert!(message.contains(device.device().to_str().expect("a name")), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_that_fails_in_mid_run_ends_it_with_one_sentence_and_keeps_what_was_measured() {
    need_loops!();
    let place = Place::new();
    // The file behind the device has holes, and its file system has room for half of it.
    let memory = place.path("small");
    std::fs::create_dir(&memory).expect("a mount point");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "none"]).arg(&memory).status();
    assert!(mounted.expect("mount").success());
    let image = memory.join("image");
    std::fs::File::create(&image).and_then(|f| f.set_len(16 * MIB)).expect("a file with holes");
    let device = Loop::over(image, 4096);
    for interface in [Interface::IoUring, Interface::Threads] {
        let spec = TargetSpec::Block { path: device.device().into(), destroy: true };
        let address = AddressSpec::Sequential { streams: 1 };
        let config = DirectConfig {
            interface,
            workload: WorkloadSpec { address, ..workload(0.0, SizeSpec::Fixed { bytes: 64 * KIB }) },
            measure: seconds(30.0),
            ..direct(vec![spec])
        };
        let result = run_direct(&config);
        let Some(LiveError::Io { key, target, errno, message }) = result.stopped_by.clone() else {
            panic!("{:?}", result.stopped_by)
        };
        assert_eq!((key.as_str(), target.as_str()), ("targets[0]", device.device().to_str().expect("a name")));
        assert!(errno == libc::EIO || errno == libc::ENOSPC, "{errno}: {message}");
        assert!(message.contains("writing 65536 bytes from byte"), "{message}");
        let counts = result.requests;
        assert!(counts.failed >= 1 && result.recorder.all().requests > 50, "{counts:?}");
        assert_eq!(counts.submitted, counts.completed + counts.failed + counts.in_flight);
    }
    drop(device);
    // Lazily: whoever else still looks at it may keep it for a moment.
    assert!(Command::new("umount").arg("-l").arg(&memory).status().expect("umount").success());
}
