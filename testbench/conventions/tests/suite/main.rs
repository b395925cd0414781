//! The house rules, one program so that they are linked once.

mod citations;
mod conformance;
mod interfaces;
mod layers;
mod layout;
mod licences;
mod targets;
mod tidy;
