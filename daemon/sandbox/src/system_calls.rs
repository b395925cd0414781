//! List of allowed system calls, and the seccomp filters that enforce it.

use std::collections::BTreeMap;
use std::io;

use libc::{c_int, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use crate::violation;

/// System calls that a process may make, and system calls that fail with an error instead of being executed. Any other
/// system call ends the process.
///
/// Only the lower 32 bits of arguments are compared.
#[derive(Clone, Debug, Default)]
pub struct SystemCalls {
    /// Allowed calls. A call without conditions may have any arguments; any other call must satisfy one of its
    /// conditions.
    allowed: BTreeMap<c_long, Vec<Condition>>,
    /// Calls that fail instead of being executed, grouped by the error number that they return.
    refused: BTreeMap<c_int, BTreeMap<c_long, Vec<Condition>>>,
}

/// Condition on one argument.
#[derive(Clone, Copy, Debug)]
struct Condition {
    argument: u8,
    comparison: Comparison,
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal(u64),
    /// The argument, combined with the mask (first field), must equal the second field.
    Masked(u64, u64),
}

impl SystemCalls {
    /// Allows calls with any arguments.
    #[must_use]
    pub fn allow(mut self, calls: &[c_long]) -> Self {
        self.allowed.extend(calls.iter().map(|call| (*call, Vec::new())));
        self
    }

    /// Allows a call if the argument at this index, counted from 0, has one of the values in `values`.
    #[must_use]
    pub fn allow_values(mut self, call: c_long, argument: u8, values: &[u64]) -> Self {
        let condition = |value: &u64| Condition { argument, comparison: Comparison::Equal(*value) };
        self.allowed.insert(call, values.iter().map(condition).collect());
        self
    }

    /// Allows `ioctl(2)` with one of these requests.
    #[must_use]
    pub fn allow_requests(self, requests: &[libc::Ioctl]) -> Self {
        // The type depends on the C library: 64 bits with glibc, 32 bits with musl.
        #[allow(clippy::unnecessary_cast)]
        let requests: Vec<_> = requests.iter().map(|request| *request as u64).collect();
        self.allow_values(libc::SYS_ioctl, 1, &requests)
    }

    /// Allows a call if all of these bits are set in the argument at this index, counted from 0.
    #[must_use]
    pub fn allow_with_bits(mut self, call: c_long, argument: u8, bits: u64) -> Self {
        let comparison = Comparison::Masked(bits, bits);
        self.allowed.insert(call, vec![Condition { argument, comparison }]);
        self
    }

    /// Allows system calls that map memory or change its protection, unless they request executable memory. A call that
    /// requests executable memory ends the process.
    #[must_use]
    pub fn allow_memory_without_code(mut self) -> Self {
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            let comparison = Comparison::Masked(libc::PROT_EXEC as u64, 0);
            self.allowed.insert(call, vec![Condition { argument: 2, comparison }]);
        }
        self
    }

    /// Allows system calls that map memory or change its protection, unless they request executable memory. A call that
    /// requests executable memory fails. An attempt to load a shared library then fails without ending the process.
    #[must_use]
    pub fn refuse_memory_with_code(mut self) -> Self {
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            self.allowed.insert(call, Vec::new());
            let comparison = Comparison::Masked(libc::PROT_EXEC as u64, libc::PROT_EXEC as u64);
            let condition = Condition { argument: 2, comparison };
            self.refused.entry(libc::EACCES).or_default().insert(call, vec![condition]);
        }
        self
    }

    /// Makes these calls fail with error number `error` instead of ending the process, even if they are also allowed.
    #[must_use]
    pub fn refuse(mut self, calls: &[c_long], error: c_int) -> Self {
        let refused = self.refused.entry(error).or_default();
        refused.extend(calls.iter().map(|call| (*call, Vec::new())));
        self
    }

    /// Installs filters that end the process if any of its threads makes a system call that this list neither allows
    /// nor causes to fail with an error. Before it ends, the process prints one line with the name of the program and
    /// the number of the call. Returns the number of allowed calls.
    ///
    /// # Errors
    /// Fails if the kernel does not support seccomp.
    pub fn filter(&self, program: &'static str) -> io::Result<usize> {
        let filters = self.compile().map_err(io::Error::other)?;
        violation::report_before_death(program)?;
        for filter in &filters {
            apply_filter_all_threads(filter).map_err(io::Error::other)?;
        }
        Ok(self.allowed.len())
    }

    /// Returns the filters in the order in which they must be installed: first those that make calls fail, then the
    /// list of allowed calls, which forbids installing further filters. The kernel applies the strictest result of all
    /// filters, so the list must also allow the calls that an earlier filter makes fail.
    fn compile(&self) -> Result<Vec<BpfProgram>, BackendError> {
        let arch = std::env::consts::ARCH.try_into()?;
        let mut filters = Vec::new();
        let mut list = BTreeMap::new();
        for (error, calls) in &self.refused {
            let refusal = SeccompAction::Errno(*error as u32);
            let filter = SeccompFilter::new(rules(calls)?, SeccompAction::Allow, refusal, arch)?;
            filters.push(filter.try_into()?);
            list.extend(calls.keys().map(|call| (*call, Vec::new())));
        }
        list.extend(rules(&self.allowed)?);
        let list = SeccompFilter::new(list, SeccompAction::Trap, SeccompAction::Allow, arch)?;
        filters.push(list.try_into()?);
        Ok(filters)
    }
}

fn rules(calls: &BTreeMap<c_long, Vec<Condition>>) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let each = calls.iter().map(|(call, conditions)| {
        let rules = conditions.iter().map(Condition::rule).collect::<Result<_, _>>()?;
        Ok((*call, rules))
    });
    each.collect()
}

impl Condition {
    fn rule(&self) -> Result<SeccompRule, BackendError> {
        let (comparison, value) = match self.comparison {
            Comparison::Equal(value) => (SeccompCmpOp::Eq, value),
            Comparison::Masked(mask, value) => (SeccompCmpOp::MaskedEq(mask), value),
        };
        let condition = SeccompCondition::new(self.argument, SeccompCmpArgLen::Dword, comparison, value)?;
        SeccompRule::new(vec![condition])
    }
}
