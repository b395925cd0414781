//! The `card` setting, and the settings that the hardware does not support.

use iswitch_card::{CardSpec, MAX_FLOATS, MEMBERS, SpecError};
use iswitch_runtime::card::CARD_PORTS;
use iswitch_switch::CardLimits;

use super::{Config, ConfigError, Settings, bad};

/// Parses the setting. `bad` creates an error from a value and a description of the expected values.
pub(super) fn parse(
    settings: &Settings,
    bad: impl Fn(String, String) -> ConfigError,
) -> Result<Option<CardSpec>, ConfigError> {
    let Some(text) = &settings.card else { return Ok(None) };
    text.parse().map(Some).map_err(|expected: SpecError| bad(format!("{text:?}"), expected.to_string()))
}

/// Applies the setting to the configuration.
///
/// # Errors
/// Fails if another setting requires something that the hardware does not support.
pub(super) fn apply(settings: &Settings, config: &mut Config) -> Result<(), ConfigError> {
    let Some(spec) = parse(settings, |text, expected| bad("card", text, expected))? else { return Ok(()) };
    let because = |what: &str| format!("{what}, because the switch has a card");
    if let Some(address) = config.udp.first() {
        return Err(bad("udp", address, because("no address")));
    }
    if config.interfaces.len() > CARD_PORTS {
        let expected = because(&format!("at most {CARD_PORTS}"));
        return Err(bad("number of --port", config.interfaces.len(), expected));
    }
    if let Some(port) = config.interfaces.iter().find(|port| port.xdp.is_some()) {
        return Err(bad("port", format!("\"{port}\""), because("an interface without the prefix xdp:")));
    }
    if config.threads.count > 1 {
        return Err(bad("threads", config.threads.count, because("1")));
    }
    if config.switch.ordered {
        return Err(bad("ordered", true, because("false")));
    }
    config.switch.card = Some(CardLimits {
        members: MEMBERS as u16,
        segment_floats: MAX_FLOATS,
        // Segments that are further apart share a slot.
        window: (spec.slots - 1) as u16,
    });
    // The card sends each result once, and only a group can deliver it to several members.
    config.switch.group_delivery |= settings.group_delivery.is_none();
    config.card = Some(spec);
    Ok(())
}
