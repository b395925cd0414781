//! The house rules, one program so that they are linked once.

mod interfaces;
mod layers;
mod layout;
mod licences;
mod tidy;
