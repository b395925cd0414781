//! Ring and parameter server over real sockets: sums are exact, all workers get the same bits, and errors state the
//! cause.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use iswitch::aggregate::{
    AggregateError, ConnectError, GradientAggregator, ParameterServer, ParameterServerClient,
    ParameterServerOptions, Ring, RingOptions, Style,
};

const TIMEOUT: Duration = Duration::from_secs(20);
const STYLES: [Style; 2] = [Style::Paper, Style::Pipelined];
/// Vector lengths: one float, fewer floats than workers, uneven chunks, and more floats than one read returns.
const LENGTHS: [u32; 5] = [1, 3, 7, 1_000, 200_003];

fn local(listener: &TcpListener) -> SocketAddrV4 {
    match listener.local_addr().unwrap() {
        std::net::SocketAddr::V4(address) => address,
        std::net::SocketAddr::V6(address) => panic!("{address}"),
    }
}

fn free_port() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)
}

/// Runs each member in a separate thread and returns their results, by rank.
fn together<T: Send>(
    members: Vec<Box<dyn FnOnce() -> Box<dyn GradientAggregator> + Send>>,
    work: impl Fn(usize, &mut dyn GradientAggregator) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(rank, join)| scope.spawn(move || work(rank, join().as_mut())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn ring(
    workers: usize,
    gradient_len: u32,
    style: Style,
) -> Vec<Box<dyn FnOnce() -> Box<dyn GradientAggregator> + Send>> {
    let listeners: Vec<_> = (0..workers).map(|_| TcpListener::bind(free_port()).unwrap()).collect();
    let members: Vec<_> = listeners.iter().map(local).collect();
    let options =
        |rank| RingOptions { members: members.clone(), rank, gradient_len, style, timeout: TIMEOUT };
    let join = |(rank, listener): (usize, TcpListener)| {
        let options = options(rank as u16);
        Box::new(move || Box::new(Ring::join_at(&options, &listener).unwrap()) as Box<dyn GradientAggregator>)
            as Box<dyn FnOnce() -> _ + Send>
    };
    listeners.into_iter().enumerate().map(join).collect()
}

/// Starts a server in a separate thread, which exits when the workers have left.
fn served(
    workers: u16,
    gradient_len: u32,
    style: Style,
) -> Vec<Box<dyn FnOnce() -> Box<dyn GradientAggregator> + Send>> {
    let options =
        ParameterServerOptions { server: free_port(), workers, gradient_len, style, timeout: TIMEOUT };
    let server = ParameterServer::bind(options.clone()).unwrap();
    let std::net::SocketAddr::V4(address) = server.local_addr().unwrap() else { panic!("no IPv4") };
    thread::spawn(move || server.run(&AtomicBool::new(false)));
    let options = ParameterServerOptions { server: address, ..options };
    let join = |rank| {
        let options = options.clone();
        Box::new(move || {
            Box::new(ParameterServerClient::join(&options, rank).unwrap()) as Box<dyn GradientAggregator>
        }) as Box<dyn FnOnce() -> _ + Send>
    };
    (0..workers).map(join).collect()
}

/// Returns a whole number that differs from round to round. Sums of these numbers are exact in any order of addition.
fn exact(rank: usize, round: usize, at: usize) -> f32 {
    ((rank + 1) * (at % 1000 + 1) + round) as f32
}

fn check_exact(workers: usize, len: u32, member: &mut dyn GradientAggregator, rank: usize) {
    for round in 0..6 {
        let contribution: Vec<_> = (0..len as usize).map(|at| exact(rank, round, at)).collect();
        let (report, sum) = member.reduce(&contribution).unwrap();
        assert_eq!((report.number as usize, usize::from(report.contributors)), (round, workers));
        for (at, x) in sum.iter().enumerate() {
            let expected: f32 = (0..workers).map(|rank| exact(rank, round, at)).sum();
            assert_eq!(*x, expected, "element {at} of {len}, round {round}, {workers} workers");
        }
    }
}

#[test]
fn ring_and_parameter_server_sums_are_exact() {
    for style in STYLES {
        for len in LENGTHS {
            for workers in [1, 2, 3, 5] {
                for members in [ring(workers, len, style), served(workers as u16, len, style)] {
                    together(members, |rank, member| check_exact(workers, len, member, rank));
                }
            }
        }
    }
}

#[test]
fn all_workers_get_the_same_bits() {
    let len = 50_001;
    for style in STYLES {
        for members in [ring(4, len, style), served(4, len, style)] {
            let sums = together(members, |rank, member| {
                let mut vector: Vec<_> =
                    (0..len).map(|at| ((at * 7 + rank as u32) as f32 * 0.123).sin()).collect();
                (0..5).for_each(|_| {
                    member.all_reduce(&mut vector).unwrap();
                });
                vector.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            });
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{style:?}");
        }
    }
}

#[test]
fn a_departing_worker_ends_the_group() {
    for members in [ring(3, 1_000, Style::Pipelined), served(3, 1_000, Style::Pipelined)] {
        let outcomes = together(members, |rank, member| {
            let contribution = vec![1.0; 1_000];
            member.reduce(&contribution).unwrap();
            // Worker 0 drops its connections here.
            (rank > 0).then(|| member.reduce(&contribution).map(|_| ()))
        });
        for outcome in outcomes.into_iter().flatten() {
            assert!(matches!(outcome, Err(AggregateError::PeerLost { .. })), "{outcome:?}");
        }
    }
}

#[test]
fn a_slow_worker_gets_the_last_sum_after_another_has_left() {
    // The vector is larger than the buffers of a connection.
    let gradient_len = 4_000_000;
    let (server, style) = (free_port(), Style::Pipelined);
    let options = ParameterServerOptions { server, workers: 2, gradient_len, style, timeout: TIMEOUT };
    let server = ParameterServer::bind(options.clone()).unwrap();
    let std::net::SocketAddr::V4(address) = server.local_addr().unwrap() else { panic!("no IPv4") };
    let serving = thread::spawn(move || server.run(&AtomicBool::new(false)));
    let options = ParameterServerOptions { server: address, ..options };
    let fast = thread::spawn(move || {
        let mut fast = ParameterServerClient::join(&options, 0).unwrap();
        fast.reduce(&vec![1.0; gradient_len as usize]).map(|_| ()).unwrap();
    });
    // The worker of rank 1 does not read until it has sent its whole vector, and then reads slowly.
    let mut slow = TcpStream::connect(address).unwrap();
    let mut hello = *b"iSW1\x01\0\x02\0\0\0\0\0\0\0\0\0";
    hello[8..12].copy_from_slice(&gradient_len.to_le_bytes());
    slow.write_all(&hello).unwrap();
    slow.read_exact(&mut hello).unwrap();
    (0..gradient_len).collect::<Vec<_>>().chunks(1000).for_each(|chunk| {
        let bytes: Vec<_> = chunk.iter().flat_map(|_| 2.0f32.to_le_bytes()).collect();
        slow.write_all(&bytes).unwrap();
    });
    fast.join().unwrap();
    thread::sleep(Duration::from_millis(100));
    let mut sum = vec![0; gradient_len as usize * 4];
    slow.read_exact(&mut sum).unwrap();
    assert!(sum.chunks(4).all(|x| x == 3.0f32.to_le_bytes()));
    assert_eq!(serving.join().unwrap().unwrap(), 1);
}

/// Imitates a port scanner. One connection is closed immediately, one stays silent, and others send unrelated data or
/// the beginning of a valid greeting. Returns the connections that stay open.
fn scan(address: SocketAddrV4) -> Vec<TcpStream> {
    drop(TcpStream::connect(address).unwrap());
    ["", "GET / HTTP/1.0\r\n\r\n", "iSW", "iSW1\x09\x00"]
        .into_iter()
        .map(|bytes| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            stream
        })
        .collect()
}

#[test]
fn foreign_connections_neither_end_nor_delay_a_parameter_server() {
    let options = ParameterServerOptions {
        server: free_port(),
        workers: 2,
        gradient_len: 10,
        style: Style::default(),
        timeout: TIMEOUT,
    };
    let server = ParameterServer::bind(options.clone()).unwrap();
    let std::net::SocketAddr::V4(address) = server.local_addr().unwrap() else { panic!("no IPv4") };
    let strangers = scan(address);
    let serving = thread::spawn(move || server.run(&AtomicBool::new(false)));
    let options = ParameterServerOptions { server: address, ..options };
    // A worker of another group connects, and so does a worker that takes a rank and then leaves.
    let other = ParameterServerOptions { gradient_len: 11, ..options.clone() };
    assert!(matches!(ParameterServerClient::join(&other, 0), Err(ConnectError::Mismatch { .. })));
    drop(ParameterServerClient::join(&options, 1).unwrap());
    let strangers_again = scan(address);
    let join = |rank| {
        let options = options.clone();
        Box::new(move || {
            Box::new(ParameterServerClient::join(&options, rank).unwrap()) as Box<dyn GradientAggregator>
        }) as Box<dyn FnOnce() -> _ + Send>
    };
    together(vec![join(0), join(1)], |rank, member| check_exact(2, 10, member, rank));
    assert_eq!(serving.join().unwrap().unwrap(), 6);
    drop((strangers, strangers_again));
}

#[test]
fn foreign_connections_neither_end_nor_delay_a_ring() {
    let listeners: Vec<_> = (0..3).map(|_| TcpListener::bind(free_port()).unwrap()).collect();
    let members: Vec<_> = listeners.iter().map(local).collect();
    let strangers: Vec<_> = members.iter().map(|address| scan(*address)).collect();
    let join = |(rank, listener): (usize, TcpListener)| {
        let (members, style) = (members.clone(), Style::Pipelined);
        let options = RingOptions { members, rank: rank as u16, gradient_len: 10, style, timeout: TIMEOUT };
        Box::new(move || Box::new(Ring::join_at(&options, &listener).unwrap()) as Box<dyn GradientAggregator>)
            as Box<dyn FnOnce() -> _ + Send>
    };
    let joins = listeners.into_iter().enumerate().map(join).collect();
    together(joins, |rank, member| check_exact(3, 10, member, rank));
    drop(strangers);
}

#[test]
fn workers_with_differing_group_settings_get_a_specific_error() {
    let options = ParameterServerOptions {
        server: free_port(),
        workers: 3,
        gradient_len: 10,
        style: Style::default(),
        timeout: Duration::from_millis(300),
    };
    let server = ParameterServer::bind(options.clone()).unwrap();
    let std::net::SocketAddr::V4(address) = server.local_addr().unwrap() else { panic!("no IPv4") };
    let serving = thread::spawn(move || server.run(&AtomicBool::new(false)));
    let options = ParameterServerOptions { server: address, ..options };
    let present = ParameterServerClient::join(&options, 1).unwrap();
    let other = ParameterServerOptions { gradient_len: 11, ..options.clone() };
    let error = ParameterServerClient::join(&other, 0).unwrap_err();
    let expected = format!("gradient length is 10 at {address}, but 11 in this process");
    assert_eq!(error.to_string(), expected);
    let error = serving.join().unwrap().unwrap_err().to_string();
    let begin = format!("ranks 0, 2 did not connect to {address} within 300ms; refused meanwhile: ");
    assert!(error.starts_with(&begin), "{error}");
    assert!(error.contains("the last one: gradient length is 11 at "), "{error}");
    drop(present);
    let none = ParameterServerOptions { workers: 0, ..options };
    assert!(matches!(ParameterServer::bind(none), Err(ConnectError::BadOption { .. })));
}

#[test]
fn a_waiting_parameter_server_can_be_stopped() {
    let options = ParameterServerOptions {
        server: free_port(),
        workers: 2,
        gradient_len: 10,
        style: Style::default(),
        timeout: Duration::MAX / 4,
    };
    let server = ParameterServer::bind(options).unwrap();
    assert_eq!(server.run(&AtomicBool::new(true)).unwrap(), 0);
}

#[test]
fn differing_ring_settings_fail_at_each_member() {
    let listeners: Vec<_> = (0..2).map(|_| TcpListener::bind(free_port()).unwrap()).collect();
    let members: Vec<_> = listeners.iter().map(local).collect();
    let joining = listeners.into_iter().enumerate().map(|(rank, listener)| {
        let (members, style) = (members.clone(), Style::Pipelined);
        let gradient_len = 10 + rank as u32;
        let options = RingOptions { members, rank: rank as u16, gradient_len, style, timeout: TIMEOUT };
        thread::spawn(move || Ring::join_at(&options, &listener).map(|_| ()).unwrap_err().to_string())
    });
    let errors: Vec<_> = joining.collect::<Vec<_>>().into_iter().map(|it| it.join().unwrap()).collect();
    // The first member to refuse names the difference; the other one might only report that it was refused.
    let named = errors.iter().filter(|error| error.contains("gradient length is 1"));
    assert!(named.count() >= 1, "{errors:?}");
}

#[test]
fn an_absent_ring_neighbour_is_reported_within_the_timeout() {
    let listener = TcpListener::bind(free_port()).unwrap();
    let nobody = local(&TcpListener::bind(free_port()).unwrap());
    let members = vec![local(&listener), nobody];
    let timeout = Duration::from_millis(50);
    let options = RingOptions { members, rank: 0, gradient_len: 1, style: Style::Paper, timeout };
    let error = Ring::join_at(&options, &listener).unwrap_err();
    assert!(error.to_string().starts_with(&format!("no connection to {nobody} within ")), "{error}");
}

#[test]
fn invalid_vectors_are_refused_before_anything_is_sent() {
    together(ring(1, 2, Style::Pipelined), |_, member| {
        assert!(matches!(member.reduce(&[1.0]), Err(AggregateError::WrongLength { .. })));
        assert!(matches!(member.reduce(&[1.0, f32::NAN]), Err(AggregateError::NonFinite { index: 1, .. })));
        assert_eq!(member.reduce(&[1.0, 2.0]).unwrap().1, [1.0, 2.0]);
    });
}
