//! Configuration of nginx as a cell. Renders the nginx configuration that this crate ships.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::client::Endpoint;

/// The template of the nginx configuration, with placeholders of the form `@NAME@`.
pub const TEMPLATE: &str = include_str!("../nginx/cell.conf");

/// nginx configuration that caches models for the actors of a cell.
#[derive(Clone, Debug)]
pub struct NginxCell {
    /// Address to listen on, in nginx's notation: `PORT`, `ADDRESS:PORT` or `unix:PATH`.
    pub listen: String,
    /// Addresses of learners or other cells. If the first one fails, nginx tries the others.
    pub upstream: Vec<Endpoint>,
    /// The absolute path of a dedicated directory for the cache, the process id and the error log.
    pub directory: PathBuf,
    /// Maximum size of the models on disk, in bytes.
    pub capacity_bytes: u64,
    /// Number of worker processes.
    pub workers: usize,
}

/// Value that is not allowed in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value:?}: expected {expected}")]
pub struct BadConfiguration {
    field: &'static str,
    value: String,
    expected: &'static str,
}

impl NginxCell {
    /// Renders the whole configuration, for `nginx -c FILE`.
    ///
    /// # Errors
    /// Fails if a value would have a special meaning in nginx's syntax.
    pub fn render(&self) -> Result<String, BadConfiguration> {
        let directory = self.directory.display().to_string();
        check("directory", &directory, directory.starts_with('/'))?;
        check("listen", &self.listen, !self.listen.is_empty())?;
        let mut servers = String::new();
        for (at, endpoint) in self.upstream.iter().enumerate() {
            let text = endpoint.to_string();
            check("upstream", &text, !matches!(endpoint, Endpoint::Tls(_)))?;
            let role = if at == 0 { "" } else { " backup" };
            let _ = write!(
                servers,
                "{}server {text} max_fails=1 fail_timeout=1s{role};",
                if at == 0 { "" } else { "\n        " }
            );
        }
        if servers.is_empty() {
            let (field, expected) = ("upstream", "at least one");
            return Err(BadConfiguration { field, value: String::new(), expected });
        }
        let capacity_mib = self.capacity_bytes.div_ceil(1 << 20).max(1);
        Ok(TEMPLATE
            .replace("@DIRECTORY@", &directory)
            .replace("@LISTEN@", &self.listen)
            .replace("@UPSTREAM@", &servers)
            .replace("@CAPACITY@", &format!("{capacity_mib}m"))
            .replace("@WORKERS@", &self.workers.max(1).to_string()))
    }
}

/// Rejects characters that end a word, a line or a block in nginx's syntax.
fn check(field: &'static str, value: &str, holds: bool) -> Result<(), BadConfiguration> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./:-_[]*".contains(c);
    if holds && value.chars().all(is_plain) {
        return Ok(());
    }
    let expected = match field {
        "directory" => "an absolute path of letters, digits and ./:-_[]*",
        "upstream" => "an address without https://, of letters, digits and ./:-_[]*",
        _ => "one or more letters, digits and ./:-_[]*",
    };
    Err(BadConfiguration { field, value: value.to_owned(), expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(listen: &str, directory: &str, upstream: &[&str]) -> NginxCell {
        NginxCell {
            listen: listen.to_owned(),
            upstream: upstream.iter().map(|text| text.parse().unwrap()).collect(),
            directory: directory.into(),
            capacity_bytes: 1 << 30,
            workers: 2,
        }
    }

    #[test]
    fn the_nginx_template_is_filled_in_completely() {
        let text =
            cell("10.0.0.2:7721", "/var/lib/models", &["learner:7720", "unix:/run/x"]).render().unwrap();
        for part in [
            "listen 10.0.0.2:7721",
            "server learner:7720 max_fails=1 fail_timeout=1s;",
            "server unix:/run/x max_fails=1 fail_timeout=1s backup;",
            "max_size=1024m",
            "worker_processes 2;",
            "proxy_cache_path /var/lib/models/cache",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains('@'), "{text}");
    }

    #[test]
    fn values_that_would_inject_nginx_directives_are_refused() {
        assert!(cell("80; root /", "/x", &["a:1"]).render().is_err());
        assert!(cell("80", "relative", &["a:1"]).render().is_err());
        assert!(cell("80", "/x}", &["a:1"]).render().is_err());
        assert!(cell("80", "/x", &["unix:/a b"]).render().is_err());
        assert!(cell("80", "/x", &["https://a:1"]).render().is_err());
        assert!(cell("80", "/x", &[]).render().is_err());
    }
}
