//! Snapshots of the public interfaces of the libraries that users link, in `fixtures/interfaces`.
//!
//! The lint `unreachable_pub` forbids `pub` on items that are not part of an interface, so the `pub` items of the
//! sources are the interface. The C header is compared by the tests of the crate `iswitch`, and the Python stubs by
//! those of `worker-lib/python`.

use std::fs;
use std::path::{Path, PathBuf};

use iswitch_conventions::{entries, root};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, Signature, TraitItem, Visibility};

/// Libraries with a snapshot, and their directories.
const LIBRARIES: [(&str, &str); 3] =
    [("iswitch", "worker-lib/worker"), ("iswitch-protocol", "protocol"), ("iswitch-switch", "daemon/switch")];
/// Environment variable that, if set, causes the snapshots to be written instead of compared.
const UPDATE_VARIABLE: &str = "ISWITCH_UPDATE_INTERFACES";

fn modules(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(modules(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.to_token_stream().to_string().contains("cfg (test)"))
}

/// Formats tokens on one line, with only the spaces that readability requires.
fn line(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (" : ", ": "),
        (" , ", ", "),
        (" ;", ";"),
        ("& ", "&"),
        (" < ", "<"),
        (" >", ">"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        (" ,", ","),
        ("->(", "-> ("),
        ("' ", "'"),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

/// Formats the signature of a function, with the name of its type `owner` before the name of the function.
fn function(owner: &str, signature: &Signature) -> String {
    let separator = if owner.is_empty() { "" } else { "::" };
    let text = line(signature);
    text.replacen("fn ", &format!("fn {owner}{separator}"), 1)
}

fn fields(fields: &syn::Fields, owner: &str, are_all_public: bool) -> Vec<String> {
    let public = fields.iter().enumerate().filter(|(_, field)| are_all_public || is_public(&field.vis));
    public
        .map(|(position, field)| {
            let name = field.ident.as_ref().map_or_else(|| position.to_string(), ToString::to_string);
            format!("field {owner}.{name}: {}", line(&field.ty))
        })
        .collect()
}

fn of_enum(item: &syn::ItemEnum) -> Vec<String> {
    let mut lines = vec![format!("enum {}{}", item.ident, line(&item.generics))];
    for variant in &item.variants {
        let owner = format!("{}::{}", item.ident, variant.ident);
        let code =
            variant.discriminant.as_ref().map_or_else(String::new, |(_, code)| format!(" = {}", line(code)));
        lines.push(format!("variant {owner}{code}"));
        lines.extend(fields(&variant.fields, &owner, true));
    }
    lines
}

fn of_trait(item: &syn::ItemTrait) -> Vec<String> {
    let owner = item.ident.to_string();
    let bounds =
        if item.supertraits.is_empty() { String::new() } else { format!(": {}", line(&item.supertraits)) };
    let mut lines = vec![format!("trait {owner}{}{bounds}", line(&item.generics))];
    for member in &item.items {
        lines.push(match member {
            TraitItem::Fn(member) => {
                let provided = if member.default.is_some() { " { .. }" } else { "" };
                format!("{}{provided}", function(&owner, &member.sig))
            }
            TraitItem::Const(member) => format!("const {owner}::{}: {}", member.ident, line(&member.ty)),
            TraitItem::Type(member) => format!("type {owner}::{}", member.ident),
            _ => continue,
        });
    }
    lines
}

fn of_impl(item: &syn::ItemImpl) -> Vec<String> {
    let owner = line(&item.self_ty);
    if let Some((of, _)) = &item.trait_ {
        return vec![format!("impl {} for {owner}", line(of))];
    }
    let mut lines = Vec::new();
    for member in &item.items {
        match member {
            ImplItem::Fn(member) if is_public(&member.vis) => lines.push(function(&owner, &member.sig)),
            ImplItem::Const(member) if is_public(&member.vis) => {
                lines.push(format!("const {owner}::{}: {}", member.ident, line(&member.ty)));
            }
            _ => {}
        }
    }
    lines
}

fn of_item(item: &Item) -> Vec<String> {
    match item {
        Item::Const(item) if is_public(&item.vis) => {
            vec![format!("const {}: {}", item.ident, line(&item.ty))]
        }
        Item::Enum(item) if is_public(&item.vis) => of_enum(item),
        Item::Fn(item) if is_public(&item.vis) => vec![function("", &item.sig)],
        Item::Impl(item) => of_impl(item),
        Item::Mod(item) if is_public(&item.vis) => vec![format!("mod {}", item.ident)],
        Item::Struct(item) if is_public(&item.vis) => {
            let owner = item.ident.to_string();
            let head = format!("struct {owner}{}", line(&item.generics));
            std::iter::once(head).chain(fields(&item.fields, &owner, false)).collect()
        }
        Item::Trait(item) if is_public(&item.vis) => of_trait(item),
        Item::Type(item) if is_public(&item.vis) => vec![format!("type {} = {}", item.ident, line(&item.ty))],
        Item::Use(item) if is_public(&item.vis) => vec![format!("use {}", line(&item.tree))],
        Item::Macro(item) => item.ident.iter().map(|name| format!("macro {name}")).collect(),
        _ => Vec::new(),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the names of public types; implementations of traits for other types are not part of the interface.
fn public_types(lines: &[String]) -> Vec<String> {
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let named = lines.iter().filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)));
    named
        .map(|rest| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
        })
        .collect()
}

/// Returns the interface of a library, one item per line.
fn interface(directory: &str) -> String {
    let sources = root().join(directory).join("src");
    let mut lines = Vec::new();
    for path in modules(&sources) {
        let text = fs::read_to_string(&path).expect("sources must be readable");
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        lines.extend(file.items.iter().filter(|item| !is_test(attributes(item))).flat_map(of_item));
    }
    let types = public_types(&lines);
    let is_of_public_type = |line: &String| {
        let Some((_, owner)) = line.strip_prefix("impl ").and_then(|rest| rest.split_once(" for ")) else {
            return true;
        };
        types
            .iter()
            .any(|name| owner.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name))
    };
    lines.retain(is_of_public_type);
    lines.sort();
    lines.dedup();
    lines.join("\n") + "\n"
}

#[test]
fn public_interfaces_match_the_recorded_fixtures() {
    for (package, directory) in LIBRARIES {
        let path = root().join(format!("fixtures/interfaces/{package}.txt"));
        let now = interface(directory);
        assert!(
            now.lines().count() > 20,
            "{package} must have more than 20 public items, but has only:\n{now}"
        );
        if std::env::var_os(UPDATE_VARIABLE).is_some() {
            fs::create_dir_all(path.parent().expect("the file must be in a directory"))
                .expect("fixtures must be writable");
            fs::write(&path, &now).expect("fixtures must be writable");
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        let gone: Vec<_> = before.lines().filter(|line| !now.lines().any(|other| other == *line)).collect();
        let new: Vec<_> = now.lines().filter(|line| !before.lines().any(|other| other == *line)).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "the public interface of {package} has changed.\nremoved:\n  {}\nadded:\n  {}\nIf the change is \
             intended, set {UPDATE_VARIABLE}=1, run this test again and commit {}; describe in CHANGELOG.md what users \
             must do.",
            gone.join("\n  "),
            new.join("\n  "),
            path.display()
        );
    }
}
