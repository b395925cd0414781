//! Text form in which checkpoints record the fabric of a training run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;

use super::Rates;
use super::fabric::{Fabric, NONE, Network};
use crate::workload::PORTS_MAX;
use iswitch_study::error::above_zero;
use iswitch_study::{StudyError, names};

/// Fields of a fabric. The keys are part of the format of checkpoints and must not change.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Record {
    ports: usize,
    capacity_bytes_per_s: f64,
    rates: String,
    network: Option<NetworkRecord>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NetworkRecord {
    relative: Vec<f64>,
    racks: Vec<Option<u32>>,
    links: Vec<Option<u32>>,
}

impl Fabric {
    /// Returns a text from which [`Self::parse_record`] creates an equal fabric.
    ///
    /// # Panics
    /// Never panics, because all rates are finite.
    pub fn to_record(&self) -> String {
        let optional =
            |numbers: &[u32]| numbers.iter().map(|it| Some(*it).filter(|it| *it != NONE)).collect();
        let network = self.network.as_ref().map(|network| NetworkRecord {
            relative: network.relative.clone(),
            racks: optional(&network.racks),
            links: optional(&network.links),
        });
        let (ports, capacity_bytes_per_s) = (self.ports, self.capacity);
        let record = Record { ports, capacity_bytes_per_s, rates: self.rates.to_string(), network };
        serde_json::to_string(&record).expect("numbers must be serializable")
    }

    /// Creates a fabric from the text that [`Self::to_record`] returned.
    ///
    /// # Errors
    /// Names the first field that is invalid.
    pub fn parse_record(text: &str) -> Result<Self, StudyError> {
        let invalid = |error| StudyError::field("fabric", error, "the record of a fabric");
        let Record { ports, capacity_bytes_per_s: capacity, rates, network } =
            serde_json::from_str(text).map_err(invalid)?;
        if !(1..=PORTS_MAX).contains(&ports) {
            return Err(StudyError::field("ports of the fabric", ports, format!("1 to {PORTS_MAX}")));
        }
        above_zero("capacity of the fabric", capacity, "bytes per second")?;
        let rates = names::parse("model of rates", &rates, Rates::iter(), "")?;
        let network = network.map(|network| network.check(ports)).transpose()?.map(Arc::new);
        Ok(Self { ports, capacity, rates, network })
    }
}

impl NetworkRecord {
    fn check(self, ports: usize) -> Result<Network, StudyError> {
        let Self { relative, racks, links } = self;
        let resources = relative.len();
        for (field, count, expected) in [("racks", racks.len(), ports), ("links", links.len(), 2 * ports)] {
            if count != expected {
                let field = format!("number of {field} of the fabric");
                return Err(StudyError::field(field, count, format!("{expected} for {ports} ports")));
            }
        }
        if resources < 2 * ports {
            let expected = format!("at least {}, one for each port", 2 * ports);
            return Err(StudyError::field("number of rates of the fabric", resources, expected));
        }
        if let Some(rate) = relative.iter().find(|rate| !(rate.is_finite() && **rate >= 1.0)) {
            return Err(StudyError::field("relative rate of the fabric", rate, "a number >= 1"));
        }
        let is_link = |link: u32| (2 * ports..resources).contains(&(link as usize));
        if let Some(link) = links.iter().flatten().find(|link| !is_link(**link)) {
            let expected = format!("a number from {} to below {resources}", 2 * ports);
            return Err(StudyError::field("link of the fabric", link, expected));
        }
        let plain = |numbers: Vec<Option<u32>>| numbers.into_iter().map(|it| it.unwrap_or(NONE)).collect();
        Ok(Network { relative, racks: plain(racks), links: plain(links) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::GBIT;
    use crate::simulation::Rack;
    use proptest::prelude::*;

    fn rack(ports: &[usize], gbit: f64) -> Rack {
        Rack { name: "r".to_owned(), ports: ports.to_vec(), uplink_gbit: gbit, downlink_gbit: gbit * 1.7 }
    }

    proptest! {
        #[test]
        fn a_record_gives_an_equal_fabric(
            gbit in prop::collection::vec((0.01..1e3, 0.01..1e3), 1..6),
            (first, second) in (0.01..1e3, 0.01..1e3),
            is_blocking: bool,
        ) {
            let (ingress, egress): (Vec<_>, Vec<_>) = gbit.iter().copied().unzip();
            let middle = ingress.len() / 2;
            let ports: Vec<usize> = (0..ingress.len()).collect();
            let racks = [rack(&ports[..middle], first), rack(&ports[middle..], second)];
            let rates = if is_blocking { Rates::Blocking } else { Rates::Backfill };
            let fabric = Fabric::of_rates(&ingress, &egress, &racks, rates).unwrap();
            prop_assert_eq!(Fabric::parse_record(&fabric.to_record()).unwrap(), fabric);
            let plain = Fabric { rates, ..Fabric::new(ingress.len(), first * GBIT) };
            prop_assert_eq!(Fabric::parse_record(&plain.to_record()).unwrap(), plain);
        }
    }

    #[test]
    fn damaged_records_are_refused_by_field() {
        let fabric = Fabric::of_rates(&[1.0; 3], &[2.0; 3], &[rack(&[0, 1], 0.5)], Rates::Backfill).unwrap();
        let text = fabric.to_record();
        let error = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            Fabric::parse_record(&text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert!(error("\"ports\":3", "\"ports\":0").starts_with("ports of the fabric is 0, expected 1 to"));
        assert_eq!(
            error("\"ports\":3", "\"ports\":4"),
            "number of racks of the fabric is 3, expected 4 for 4 ports"
        );
        assert!(error("backfill", "other").starts_with("model of rates is other, expected one of"));
        assert_eq!(error("[6,6,", "[6,9,"), "link of the fabric is 9, expected a number from 6 to below 8");
        assert!(error("62500000.0", "0.0").starts_with("capacity of the fabric is 0, expected"));
        assert!(error("{", "").starts_with("fabric is "));
    }
}
