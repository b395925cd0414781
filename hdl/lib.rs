//! The accelerator of figure 7 as RTL for a NetFPGA-SUME. Nothing is here yet: the software switch comes
//! first.
