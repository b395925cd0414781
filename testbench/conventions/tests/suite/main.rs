//! Tests of the house rules, in one program so that it is linked only once.

mod citations;
mod conformance;
mod interfaces;
mod layers;
mod layout;
mod licences;
mod locks;
mod packaging;
mod pages;
mod targets;
mod tidy;
mod words;
