//! The sandbox of a server that runs on tokio.

use std::fmt;

use crate::{FileRules, Landlock, SandboxError, SystemCalls, drop_privileges};

/// Sandboxed server that has dropped its privileges and its access to files, but does not filter its system calls yet.
#[derive(Debug)]
pub struct ServerSandbox {
    program: &'static str,
    landlock: Landlock,
}

impl ServerSandbox {
    /// Drops all capabilities, and all access to files and TCP ports except what `files` allows. The process must have
    /// only one thread: call this before building the tokio runtime.
    ///
    /// # Errors
    /// Fails if the process would keep a capability. A kernel without Landlock causes no error.
    pub fn enter(program: &'static str, files: &FileRules) -> Result<Self, SandboxError> {
        drop_privileges(|| Ok::<_, SandboxError>(()))?;
        Ok(Self { program, landlock: files.restrict() })
    }

    /// Installs a filter that ends the process if it makes a system call that `calls` does not contain. Call this once
    /// the runtime and all listeners exist. A kernel without seccomp causes no error.
    pub fn filter(self, calls: &SystemCalls) -> InForce {
        let Self { program, landlock } = self;
        InForce { landlock, calls: calls.filter(program).map_err(|error| error.to_string()) }
    }
}

/// Parts of the sandbox that are in force.
#[derive(Clone, Debug)]
pub struct InForce {
    landlock: Landlock,
    calls: Result<usize, String>,
}

impl InForce {
    /// Returns one warning line for each part of the sandbox that the kernel lacks.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Landlock::Missing { reason } = &self.landlock {
            warnings
                .push(format!("Landlock is not available ({reason}): the process retains access to files"));
        }
        if let Err(reason) = &self.calls {
            warnings.push(format!(
                "seccomp is not available ({reason}): the process can still make any system call"
            ));
        }
        warnings
    }
}

/// Writes one line that names the parts that are in force.
impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sandbox: no capabilities")?;
        if matches!(self.landlock, Landlock::Enforced { .. }) {
            f.write_str(", files restricted by Landlock")?;
        }
        if let Ok(allowed) = self.calls {
            write!(f, ", {allowed} system calls allowed by seccomp")?;
        }
        Ok(())
    }
}

/// System calls of a server that are allowed with any arguments.
const SERVER_CALLS: &[libc::c_long] = &[
    // connections, and wake-ups
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_close,
    // clocks
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    // memory
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // start and end of threads
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // signals, and the abort after a panic
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    // hash tables and TLS
    libc::SYS_getrandom,
    // the file of a Unix socket, which is removed on shutdown
    libc::SYS_unlinkat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
];

/// Returns the system calls of a tokio server that is already listening, makes no connections and opens no files.
pub fn server_calls() -> SystemCalls {
    SystemCalls::default()
        .allow(SERVER_CALLS)
        .allow(OLD_SERVER_CALLS)
        .allow_memory_without_code()
        // Allow new threads but no new processes. If clone3 is missing, glibc falls back to clone, whose flags the
        // filter can check.
        .allow_with_bits(libc::SYS_clone, 0, libc::CLONE_THREAD as u64)
        .refuse(&[libc::SYS_clone3], libc::ENOSYS)
        .allow_requests(&[libc::FIONBIO])
        .allow_values(libc::SYS_prctl, 0, &[libc::PR_SET_NAME as u64, PR_SET_VMA])
        .allow_values(
            libc::SYS_fcntl,
            1,
            &[libc::F_GETFD as u64, libc::F_GETFL as u64, libc::F_SETFD as u64, libc::F_SETFL as u64],
        )
        // Libraries make these calls incidentally, to read limits or to find the symbols for a backtrace.
        .refuse(
            &[libc::SYS_readlinkat, libc::SYS_faccessat, libc::SYS_getcwd, libc::SYS_prlimit64],
            libc::EACCES,
        )
        .refuse(OLD_PROBES, libc::EACCES)
}

/// `prctl(2)` option that names a memory mapping, from `linux/prctl.h`. glibc has used it since version 2.39.
const PR_SET_VMA: u64 = 0x5356_4d41;

/// Older system calls of this architecture that have newer equivalents in [`SERVER_CALLS`].
#[cfg(target_arch = "x86_64")]
const OLD_SERVER_CALLS: &[libc::c_long] = &[
    libc::SYS_epoll_wait,
    libc::SYS_poll,
    libc::SYS_unlink,
    libc::SYS_fstat,
    libc::SYS_stat,
    libc::SYS_lstat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_SERVER_CALLS: &[libc::c_long] = &[libc::SYS_fstat];

/// Older equivalents of the system calls that fail with an error instead of ending the process.
#[cfg(target_arch = "x86_64")]
const OLD_PROBES: &[libc::c_long] = &[libc::SYS_readlink, libc::SYS_access];
#[cfg(not(target_arch = "x86_64"))]
const OLD_PROBES: &[libc::c_long] = &[];

/// Adds the system calls for creating, reading, writing, renaming and removing files.
pub fn file_calls(calls: SystemCalls) -> SystemCalls {
    let calls = calls.allow(&[
        libc::SYS_openat,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_lseek,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_getdents64,
        libc::SYS_renameat2,
    ]);
    calls.allow(OLD_FILE_CALLS)
}

#[cfg(target_arch = "x86_64")]
const OLD_FILE_CALLS: &[libc::c_long] = &[libc::SYS_rename, libc::SYS_renameat];
#[cfg(target_arch = "aarch64")]
const OLD_FILE_CALLS: &[libc::c_long] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLD_FILE_CALLS: &[libc::c_long] = &[];
