//! Files that describe a fabric: rates of ports, and racks with links to the core, as TOML.

use std::path::Path;

use serde::Deserialize;

use crate::simulation::{Fabric, Rack, Rates};
use crate::workload::PORTS_MAX;
use iswitch_study::StudyError;
use iswitch_study::error::above_zero;
use iswitch_study::table::read;

/// Content of a file that describes a fabric.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FabricFile {
    /// Number of ingress ports, equal to the number of egress ports.
    pub ports: usize,
    gbit: Option<f64>,
    #[serde(default)]
    port: Vec<PortEntry>,
    #[serde(default)]
    rack: Vec<RackEntry>,
}

/// Ports whose rates differ from the default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortEntry {
    ports: Vec<usize>,
    gbit: Option<f64>,
    ingress_gbit: Option<f64>,
    egress_gbit: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RackEntry {
    name: Option<String>,
    ports: Vec<usize>,
    uplink_gbit: Option<f64>,
    downlink_gbit: Option<f64>,
    oversubscription: Option<f64>,
}

impl FabricFile {
    /// Reads the description of a fabric from a file. docs/coflow.md describes the keys and contains an example.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if it is not TOML, or if it has an unknown key.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        Self::parse(path, &read(path)?)
    }

    /// Parses the description of a fabric. `path` is used only in error messages.
    ///
    /// # Errors
    /// Fails if the text is invalid.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        let file: Self = toml::from_str(text).map_err(|error| {
            let message = error.message().trim().replace('\n', "; ");
            match error.span() {
                Some(span) => StudyError::line(path, text[..span.start].matches('\n').count() + 1, message),
                None => StudyError::file(path, message),
            }
        })?;
        if !(1..=PORTS_MAX).contains(&file.ports) {
            let error = StudyError::field("ports", file.ports, format!("1 to {PORTS_MAX}"));
            return Err(StudyError::file(path, error));
        }
        Ok(file)
    }

    /// Returns the fabric. `gbit` is the rate, in Gbit/s, of the ports whose rate the file does not specify. `path`
    /// is used only in error messages.
    ///
    /// # Errors
    /// Fails if a rate or an oversubscription factor is out of range, if a port does not exist, if the file specifies
    /// the rates of a port twice, or if a port is in two racks.
    pub fn fabric(&self, path: &Path, gbit: f64, rates: Rates) -> Result<Fabric, StudyError> {
        let [ingress, egress] = self.rates(gbit).map_err(|error| StudyError::file(path, error))?;
        let racks = self.rack.iter().enumerate();
        let racks = racks.map(|(number, rack)| rack.rack(number, self.ports, [&ingress, &egress]));
        let fabric = racks
            .collect::<Result<Vec<_>, _>>()
            .and_then(|racks| Fabric::of_rates(&ingress, &egress, &racks, rates));
        fabric.map_err(|error| StudyError::file(path, error))
    }

    /// Returns the rates of the ingress ports and of the egress ports, in Gbit/s.
    fn rates(&self, gbit: f64) -> Result<[Vec<f64>; 2], StudyError> {
        let default = self.gbit.unwrap_or(gbit);
        let mut rates = [vec![default; self.ports], vec![default; self.ports]];
        let mut is_stated = vec![false; self.ports];
        for (number, entry) in self.port.iter().enumerate() {
            if entry.gbit.is_none() && entry.ingress_gbit.is_none() && entry.egress_gbit.is_none() {
                let expected = "gbit, ingress_gbit or egress_gbit";
                return Err(StudyError::field(format!("rate of port[{number}]"), "missing", expected));
            }
            for port in &entry.ports {
                let field = || format!("port[{number}].ports");
                check_port(field(), *port, self.ports)?;
                if std::mem::replace(&mut is_stated[*port], true) {
                    let expected = "ports whose rates no other entry specifies";
                    return Err(StudyError::field(field(), port, expected));
                }
                for (rates, own) in rates.iter_mut().zip([entry.ingress_gbit, entry.egress_gbit]) {
                    rates[*port] = own.or(entry.gbit).unwrap_or(default);
                }
            }
        }
        Ok(rates)
    }
}

impl RackEntry {
    fn rack(&self, number: usize, ports: usize, [ingress, egress]: [&[f64]; 2]) -> Result<Rack, StudyError> {
        let name = self.name.clone().unwrap_or_else(|| number.to_string());
        if self.ports.is_empty() {
            return Err(StudyError::field(format!("number of ports of rack {name}"), 0, "at least 1"));
        }
        for port in &self.ports {
            check_port(format!("port of rack {name}"), *port, ports)?;
        }
        let sum = |rates: &[f64]| self.ports.iter().map(|port| rates[*port]).sum::<f64>();
        let field = |what: &str| format!("{what} of rack {name}");
        let (uplink_gbit, downlink_gbit) = match (self.oversubscription, self.uplink_gbit) {
            (Some(factor), None) if self.downlink_gbit.is_none() => {
                let factor = above_zero(field("oversubscription"), factor, "times")?;
                (sum(ingress) / factor, sum(egress) / factor)
            }
            (None, Some(uplink)) => (uplink, self.downlink_gbit.unwrap_or(uplink)),
            _ => {
                let expected = "either oversubscription, or uplink_gbit and optionally downlink_gbit";
                let value = match (self.oversubscription, self.downlink_gbit) {
                    (None, None) => "missing",
                    (None, Some(_)) => "downlink_gbit alone",
                    (Some(_), _) => "oversubscription together with a rate",
                };
                return Err(StudyError::field(field("link"), value, expected));
            }
        };
        Ok(Rack { name, ports: self.ports.clone(), uplink_gbit, downlink_gbit })
    }
}

fn check_port(field: String, port: usize, ports: usize) -> Result<(), StudyError> {
    if port < ports {
        return Ok(());
    }
    Err(StudyError::field(field, port, format!("0 to {}", ports - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::GBIT;

    fn fabric(text: &str) -> Result<Fabric, StudyError> {
        let path = Path::new("fabric.toml");
        FabricFile::parse(path, text)?.fabric(path, 1.0, Rates::Backfill)
    }

    #[test]
    fn rates_and_racks_of_the_file_are_those_of_the_fabric() {
        let text = "ports = 4\ngbit = 10\n[[port]]\nports = [1, 2]\ngbit = 20\negress_gbit = 40\n\
                    [[rack]]\nports = [0, 1]\noversubscription = 2\n[[rack]]\nports = [3]\nuplink_gbit = 4\n";
        let fabric = fabric(text).unwrap();
        // The slowest resource is the uplink of the second rack. The first rack has an uplink of (10 + 20) / 2 and a
        // downlink of (10 + 40) / 2.
        let rate = |resource| fabric.relative(resource) * fabric.capacity / GBIT;
        let got: Vec<f64> = (0..fabric.resources()).map(rate).collect();
        assert_eq!(got, [10.0, 20.0, 20.0, 10.0, 10.0, 40.0, 40.0, 10.0, 15.0, 25.0, 4.0, 4.0]);
        assert_eq!(fabric.capacity, 4.0 * GBIT);
    }

    #[test]
    fn a_file_without_rates_describes_the_default_fabric() {
        assert_eq!(fabric("ports = 3").unwrap(), Fabric::new(3, GBIT));
        let racks = "ports = 2\n[[rack]]\nports = [0]\noversubscription = 1\n";
        assert_eq!(fabric(racks).unwrap(), Fabric::new(2, GBIT));
    }

    #[test]
    fn errors_name_the_file_and_the_field() {
        for (text, want) in [
            ("ports = 0", "fabric.toml: ports is 0, expected 1 to 65536"),
            ("ports = 2\nport = 1", "fabric.toml, line 2: invalid type: integer `1`, expected a sequence"),
            (
                "ports = 2\ngbit = 0",
                "fabric.toml: ingress_gbit of port 0 is 0, expected 0.001 to 1000000 Gbit/s",
            ),
            (
                "ports = 2\n[[port]]\nports = [2]\ngbit = 1",
                "fabric.toml: port[0].ports is 2, expected 0 to 1",
            ),
            (
                "ports = 2\n[[port]]\nports = [1]\ngbit = 1\n[[port]]\nports = [1]\ngbit = 2",
                "fabric.toml: port[1].ports is 1, expected ports whose rates no other entry specifies",
            ),
            (
                "ports = 2\n[[port]]\nports = [1]",
                "fabric.toml: rate of port[0] is missing, expected gbit, ingress_gbit or egress_gbit",
            ),
            (
                "ports = 2\n[[port]]\nports = [1]\negress_gbit = -1",
                "fabric.toml: egress_gbit of port 1 is -1, expected 0.001 to 1000000 Gbit/s",
            ),
            (
                "ports = 2\n[[rack]]\nports = [5]\nuplink_gbit = 1",
                "fabric.toml: port of rack 0 is 5, expected 0 to 1",
            ),
            (
                "ports = 2\n[[rack]]\nports = [0]\noversubscription = 0",
                "fabric.toml: oversubscription of rack 0 is 0, expected a number of times above 0",
            ),
            (
                "ports = 2\n[[rack]]\nname = \"a\"\nports = [0]",
                "fabric.toml: link of rack a is missing, expected either oversubscription, or uplink_gbit and \
                 optionally downlink_gbit",
            ),
            (
                "ports = 2\n[[rack]]\nname = \"a\"\nports = [0]\nuplink_gbit = 1\n\
                 [[rack]]\nname = \"b\"\nports = [1, 0]\nuplink_gbit = 1",
                "fabric.toml: port of rack b is 0, expected a port that is not in rack a as well",
            ),
            (
                "ports = 2\n[[rack]]\nports = []",
                "fabric.toml: number of ports of rack 0 is 0, expected at least 1",
            ),
        ] {
            assert_eq!(fabric(text).unwrap_err().to_string(), want, "{text}");
        }
        let unknown = fabric("ports = 2\nspeed = 1").unwrap_err().to_string();
        assert!(unknown.starts_with("fabric.toml, line 2: unknown field `speed`"), "{unknown}");
    }
}
