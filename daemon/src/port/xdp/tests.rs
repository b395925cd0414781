//! The program in the kernel's own hands, and rings without a device. Needs root; elsewhere it says so.
