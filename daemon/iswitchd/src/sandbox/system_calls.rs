//! System calls of a running daemon, grouped by the component that needs them.

use iswitch_sandbox::SystemCalls;
use libc::c_long;

/// System calls allowed with any arguments.
const ALLOWED: [c_long; 42] = [
    // the packet loop, and waiting in the other threads
    libc::SYS_ppoll,
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_getsockopt, // drop counters of the kernel
    libc::SYS_bind,       // to an interface that was recreated
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    // the log, the control socket, wake-ups
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_accept4,
    libc::SYS_setsockopt, // timeouts of clients
    libc::SYS_close,
    libc::SYS_shutdown,
    // the files of the flight recorder, which are already open
    libc::SYS_pread64,
    libc::SYS_ftruncate,
    // the directory of open descriptors, for metrics, which is already open
    libc::SYS_getdents64,
    libc::SYS_lseek,
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
    libc::SYS_wait4, // waits for the monitor to exit
    libc::SYS_waitid,
    // signals, and the abort after a panic
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    // seeds of hash tables
    libc::SYS_getrandom,
];

/// Allowed `ioctl(2)` requests: those that query the state of an interface, and the request that sets non-blocking
/// mode.
const IOCTLS: [libc::Ioctl; 5] =
    [libc::SIOCGIFINDEX, libc::SIOCGIFMTU, libc::SIOCGIFFLAGS, libc::SIOCGIFHWADDR, libc::FIONBIO];

/// Allowed `prctl(2)` operations: naming threads, and naming memory (glibc 2.39 and later).
const PRCTLS: [u64; 2] = [libc::PR_SET_NAME as u64, PR_SET_VMA];
/// Value from `linux/prctl.h`.
const PR_SET_VMA: u64 = 0x5356_4d41;

/// System calls that libraries attempt incidentally, for instance to count processors or to look up the function names
/// in a backtrace. The sandbox makes these calls fail, which the libraries tolerate.
const DENIED: [c_long; 6] = [
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_getcwd,
];

/// Returns the list of system calls that the filter allows. If `notifies` is true, the list includes those that send
/// notifications to systemd.
pub(super) fn list(notifies: bool) -> SystemCalls {
    let calls = SystemCalls::default()
        .allow(&ALLOWED)
        .allow_requests(&IOCTLS)
        .allow_values(libc::SYS_prctl, 0, &PRCTLS)
        .allow_values(libc::SYS_fcntl, 1, &[libc::F_GETFD as u64, libc::F_GETFL as u64])
        .allow_memory_without_code()
        .refuse(&DENIED, libc::EACCES);
    if !notifies {
        return calls;
    }
    calls.allow(&[libc::SYS_connect]).allow_values(libc::SYS_socket, 0, &[libc::AF_UNIX as u64])
}
