//! Fuzz targets: packets that workers receive from a switch or from each other. `docs/fuzzing.md` describes how to run
//! them.

mod asynchronous;
mod session;
mod state;
mod turn;
mod upstream;

use iswitch::worker::session::{Session, SessionConfig};
use iswitch_protocol::wire::{Class, JoinRepr, NameRepr};
use iswitch_protocol::{Instant, VectorLayout};
use turn::Scenario;

/// The input is arbitrary bytes; the first two are the class of the packets and the length of each datagram.
#[test]
fn session_bytes() {
    bolero::check!().with_iterations(5000).for_each(|bytes: &[u8]| {
        let Some(([class, stride], payload)) = bytes.split_first_chunk() else { return };
        let class = if class & 1 == 0 { Class::Control } else { Class::Data };
        let layout = VectorLayout::new(13, 4).expect("the layout must be valid");
        let join = JoinRepr { instance: 1, ..JoinRepr::worker(13, 4, 2) };
        let name = NameRepr { rank: Some(1), ..NameRepr::UNKNOWN };
        let config =
            SessionConfig { job: 1, layout, parts: 1, join, recv_buffer_bytes: 4096, heartbeats: true, name };
        let now = Instant::from_nanos(1);
        let mut session = Session::new(config, now);
        session.begin_round(now);
        session.handle_datagrams(now, class, payload, usize::from(*stride));
        let mut buffer = Vec::new();
        while session.poll_transmit(now, &[1.0; 13], &mut buffer).is_some() {}
    });
}

#[test]
fn session() {
    bolero::check!().with_iterations(200).with_type::<Scenario>().for_each(session::run);
}

#[test]
fn asynchronous() {
    bolero::check!().with_iterations(200).with_type::<Scenario>().for_each(asynchronous::run);
}
