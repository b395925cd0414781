//! The system calls of a running daemon, and who needs them.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// Without a look at their arguments.
const ALLOWED: [c_long; 40] = [
    // the packet loop, and the waits of the other threads
    libc::SYS_ppoll,
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_getsockopt, // the kernel's counters of drops
    libc::SYS_bind,       // to an interface that was made anew
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    // the log, the control socket, wake-ups
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_accept4,
    libc::SYS_setsockopt, // timeouts of a client
    libc::SYS_close,
    libc::SYS_shutdown,
    // the flight recorder's files, which are open
    libc::SYS_pread64,
    libc::SYS_ftruncate,
    // memory
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // threads, their start and their end
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
    libc::SYS_wait4, // the end of the monitor
    libc::SYS_waitid,
    // signals, and a panic's abort
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    // hash tables
    libc::SYS_getrandom,
];

/// Requests of `ioctl(2)`: the state of an interface, and sockets that do not block.
const IOCTLS: [libc::Ioctl; 5] =
    [libc::SIOCGIFINDEX, libc::SIOCGIFMTU, libc::SIOCGIFFLAGS, libc::SIOCGIFHWADDR, libc::FIONBIO];

/// Names of threads, and of memory (since glibc 2.39).
const PRCTLS: [u64; 2] = [libc::PR_SET_NAME as u64, PR_SET_VMA];
/// From `linux/prctl.h`.
const PR_SET_VMA: u64 = 0x5356_4d41;

/// What libraries try in passing, such as counting processors or finding the names of a backtrace. It fails
/// without harm.
const DENIED: [c_long; 6] = [
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_getcwd,
];

/// The compiled filters.
pub(super) struct Filters {
    /// Traps whatever is not on the list.
    list: BpfProgram,
    /// Denies what fails without harm. Of two filters the stricter decides, and both let pass what is allowed.
    denial: BpfProgram,
    allowed: usize,
}

impl Filters {
    /// `notifies` adds what it takes to write to systemd.
    pub(super) fn compile(notifies: bool) -> io::Result<Self> {
        Self::try_compile(notifies).map_err(io::Error::other)
    }

    fn try_compile(notifies: bool) -> Result<Self, BackendError> {
        let arch = std::env::consts::ARCH.try_into()?;
        let list = allowed(notifies)?;
        let allowed = list.len();
        let any = |calls: &[c_long]| calls.iter().map(|call| (*call, Vec::new())).collect();
        let mut with_denied: BTreeMap<i64, Vec<SeccompRule>> = any(&DENIED);
        with_denied.extend(list);
        let list = SeccompFilter::new(with_denied, SeccompAction::Trap, SeccompAction::Allow, arch)?;
        let eacces = SeccompAction::Errno(libc::EACCES as u32);
        let denial = SeccompFilter::new(any(&DENIED), SeccompAction::Allow, eacces, arch)?;
        Ok(Self { list: list.try_into()?, denial: denial.try_into()?, allowed })
    }

    /// Installs them in all threads, and returns the number of system calls that are left.
    pub(super) fn install(&self) -> io::Result<usize> {
        // In this order: the list does not allow to install another one.
        apply_filter_all_threads(&self.denial).map_err(io::Error::other)?;
        apply_filter_all_threads(&self.list).map_err(io::Error::other)?;
        Ok(self.allowed)
    }
}

fn allowed(notifies: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<_, _> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let mut one_of = |call: c_long, argument, values: &[u64]| {
        let each = values.iter().map(|value| when(argument, SeccompCmpOp::Eq, *value));
        rules.insert(call, each.collect::<Result<Vec<_>, _>>()?);
        Ok::<_, BackendError>(())
    };
    // The type is the platform's: 64 bits with glibc, 32 with musl.
    #[allow(clippy::unnecessary_cast)]
    one_of(libc::SYS_ioctl, 1, &IOCTLS.map(|request| request as u64))?;
    one_of(libc::SYS_prctl, 0, &PRCTLS)?;
    one_of(libc::SYS_fcntl, 1, &[libc::F_GETFD as u64, libc::F_GETFL as u64])?;
    if notifies {
        one_of(libc::SYS_socket, 0, &[libc::AF_UNIX as u64])?;
        rules.insert(libc::SYS_connect, Vec::new());
    }
    // No memory becomes code.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let no_code = when(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)?;
        rules.insert(call, vec![no_code]);
    }
    Ok(rules)
}

/// A rule on one argument, of which the kernel takes 32 bits.
fn when(argument: u8, comparison: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)?])
}
