//! Asynchronous training with a parameter server (Mnih et al., 2016; the baseline of figure 15 in the iSwitch paper).
//! The server holds the model, applies each gradient when it arrives, and responds with the updated model.
//!
//! A gradient is not applied if it was computed from a model that is more than S updates old, where S is the staleness
//! bound. Each worker has one TCP connection, which carries:
//!
//! | from | content, little-endian |
//! |---|---|
//! | both sides, once | magic `iSW2`, length of a vector u32, length of the model u32; lengths in floats |
//! | server | model number u64, whether the last vector was applied u32, whether the run is over u32; the model |
//! | worker | number of the model from which the vector was computed u64; the vector |

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::TrainError;
use super::asynchronous::{LocalSide, Observer, REPORT_EVERY};
use super::halves::LocalHalf;
use super::replica::Replica;
use iswitch::reception::{GreetedConnection, Reception, Refusal};

const MAGIC: [u8; 4] = *b"iSW2";
const GREETING_LEN_BYTES: usize = 12;
/// Maximum number of workers that the server serves at the same time. Each worker needs a thread and a copy of the
/// model.
const MAX_WORKERS: usize = 1_024;
/// Interval between a worker's attempts to connect to the server.
const CONNECT_RETRY: Duration = Duration::from_millis(20);
/// Timeout for receiving a vector or a model. It is long because the slowest worker may take a long time to step its
/// environments between two vectors.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Interval at which the server checks whether it has been stopped, or the run is over and all workers have left.
const POLL: Duration = Duration::from_millis(10);

/// Counts of the vectors that the server has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Number of vectors that were applied, which is the number of updates.
    pub applied: u64,
    /// Number of vectors that were not applied, for example because they were too stale.
    pub skipped: u64,
    /// Number of applied vectors by staleness, from 0 to S.
    pub staleness: Vec<u64>,
}

/// The model on the server, and the state of the run.
struct State<'a, 'b> {
    model: Vec<f32>,
    replica: Replica,
    bound: u64,
    report: ServerReport,
    observe: &'a mut Observer<'b>,
    since: Instant,
    failure: Option<TrainError>,
    /// Whether a worker has requested a stop, or the run is complete.
    is_over: bool,
}

impl State<'_, '_> {
    fn is_over(&self) -> bool {
        self.is_over || self.failure.is_some()
    }

    /// Applies a vector, unless the run is over, the vector is too stale, or it claims to come from a model that does
    /// not exist yet. `made_from` is the number of the model from which the vector was computed. Returns whether the
    /// vector was applied.
    fn take(&mut self, vector: &[f32], made_from: u64) -> bool {
        let staleness = self.report.applied.saturating_sub(made_from);
        if self.is_over() || staleness > self.bound || made_from > self.report.applied {
            self.report.skipped += 1;
            return false;
        }
        self.report.staleness[staleness as usize] += 1;
        self.report.applied += 1;
        self.replica.apply(&mut self.model, vector, 1);
        self.is_over = self.replica.is_over();
        if self.is_over || self.report.applied.is_multiple_of(REPORT_EVERY) {
            let report = self.replica.report(self.since.elapsed());
            self.since = Instant::now();
            if let Err(error) = (self.observe)(&self.replica, &self.model, &report) {
                self.failure = Some(error);
            }
        }
        true
    }
}

/// Asynchronous parameter server that is listening for workers, but is not serving them yet.
#[derive(Debug)]
pub struct AsyncServer {
    listener: TcpListener,
    vector_len: usize,
    bound: u32,
}

impl AsyncServer {
    /// Listens on an address; port 0 selects a free port. Vectors have `vector_len` floats. `bound` is the staleness
    /// bound S, in updates.
    ///
    /// # Errors
    /// Fails if the server cannot listen on the address.
    pub fn bind(address: SocketAddrV4, vector_len: usize, bound: u32) -> Result<Self, TrainError> {
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| failed("cannot listen at", address.into(), error))?;
        Ok(Self { listener, vector_len, bound })
    }

    /// Returns the address on which the server listens.
    ///
    /// # Errors
    /// Fails if the operating system does not return the address.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves workers, which may join and leave at any time. Once the run is complete or a worker has requested a stop,
    /// notifies all workers and returns. If `stop` is set, accepts no further workers, and returns when all connected
    /// workers have left.
    ///
    /// # Errors
    /// Fails if the observer or the listener fails. If a connection fails, only that connection is closed. If a
    /// connection's greeting does not come from a worker of this job, the server closes the connection and logs the
    /// reason.
    pub fn run(
        self,
        model: Vec<f32>,
        replica: Replica,
        stop: &AtomicBool,
        observe: &mut Observer<'_>,
    ) -> Result<ServerReport, TrainError> {
        let report = ServerReport { staleness: vec![0; self.bound as usize + 1], ..ServerReport::default() };
        let state = Mutex::new(State {
            model,
            replica,
            bound: self.bound.into(),
            report,
            observe,
            since: Instant::now(),
            failure: None,
            is_over: false,
        });
        let address = self.listener.local_addr().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let reception = Reception::new(self.listener, &MAGIC);
        let mut reception = reception.map_err(|error| failed("cannot listen at", address, error))?;
        std::thread::scope(|scope| {
            let mut serving = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let greeted = reception.next(Some(Instant::now() + POLL), &[]);
                if let Some(guest) = greeted.map_err(|error| failed("cannot listen at", address, error))?
                    && let Some((stream, peer)) = admit(&reception, guest, self.vector_len, &state, &serving)
                {
                    let (state, len) = (&state, self.vector_len);
                    serving.push(scope.spawn(move || {
                        if let Err(error) = serve(stream, len, state) {
                            tracing::warn!(%peer, %error, "the connection to a worker ended");
                        }
                    }));
                }
                serving.retain(|thread| !thread.is_finished());
                if serving.is_empty() && lock(&state).is_over() {
                    break;
                }
            }
            Ok::<(), TrainError>(())
        })?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(error) => Err(error),
            None => Ok(state.report),
        }
    }
}

fn lock<'s, 'a, 'b>(state: &'s Mutex<State<'a, 'b>>) -> MutexGuard<'s, State<'a, 'b>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(what: &'static str, peer: SocketAddr, error: std::io::Error) -> TrainError {
    TrainError::Server { what, peer, error }
}

/// Encodes the greeting, which workers and the server send in the same form.
fn greeting(vector_len: usize, model_len: usize) -> [u8; GREETING_LEN_BYTES] {
    let mut bytes = [0; GREETING_LEN_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&(vector_len as u32).to_le_bytes());
    bytes[8..].copy_from_slice(&(model_len as u32).to_le_bytes());
    bytes
}

/// Returns the vector length and the model length, in floats, that a greeting contains. The greeting must begin with
/// the magic.
fn lengths(greeting: [u8; GREETING_LEN_BYTES]) -> [u32; 2] {
    let [_, _, _, _, a, b, c, d, e, f, g, h] = greeting;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

/// Receives a greeting and responds to it. Returns the connection if the greeting comes from a worker of this job and
/// the server is not full.
fn admit<T>(
    reception: &Reception<GREETING_LEN_BYTES>,
    guest: GreetedConnection<GREETING_LEN_BYTES>,
    vector_len: usize,
    state: &Mutex<State<'_, '_>>,
    serving: &[T],
) -> Option<(TcpStream, SocketAddr)> {
    let GreetedConnection { mut stream, peer, greeting: theirs } = guest;
    if serving.len() >= MAX_WORKERS {
        reception.refuse(Refusal::Full, peer, &format!("already serving {MAX_WORKERS} workers"));
        return None;
    }
    let own = greeting(vector_len, lock(state).model.len());
    // The reply is sent before the check, so that the worker can also report the mismatch.
    if let Err(error) = stream.write_all(&own) {
        reception.refuse(Refusal::Closed, peer, &error);
        return None;
    }
    if theirs != own {
        let ([vector, model], [own_vector, own_model]) = (lengths(theirs), lengths(own));
        let problem = format!(
            "its vectors have {vector} floats and its model has {model} floats, expected {own_vector} and {own_model}"
        );
        reception.refuse(Refusal::OtherGroup, peer, &problem);
        return None;
    }
    Some((stream, peer))
}

/// Serves one worker until it leaves or the run is over.
fn serve(mut stream: TcpStream, vector_len: usize, state: &Mutex<State<'_, '_>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let mut model = lock(state).model.clone();
    let mut vector = vec![0.0_f32; vector_len];
    let mut applied = true;
    loop {
        let (number, is_over) = {
            let state = lock(state);
            model.copy_from_slice(&state.model);
            (state.report.applied, state.is_over())
        };
        stream.write_all(&number.to_le_bytes())?;
        stream.write_all(&u32::from(applied).to_le_bytes())?;
        stream.write_all(&u32::from(is_over).to_le_bytes())?;
        stream.write_all(bytemuck::cast_slice(&model))?;
        if is_over {
            return Ok(());
        }
        let made_from = read_u64(&mut stream)?;
        stream.read_exact(bytemuck::cast_slice_mut(&mut vector))?;
        if let Some(index) = vector.iter().position(|x| !x.is_finite()) {
            return Err(std::io::Error::other(format!(
                "vector[{index}] is {}, expected a finite number",
                vector[index]
            )));
        }
        applied = lock(state).take(&vector, made_from);
    }
}

fn read_u32(stream: &mut TcpStream) -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_u64(stream: &mut TcpStream) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Options of a worker that uses an asynchronous parameter server.
#[derive(Clone, Copy, Debug)]
pub struct AsyncClientOptions {
    /// Address of the server.
    pub server: SocketAddrV4,
    /// Number of floats in a vector.
    pub vector_len: usize,
    /// Number of floats in the model.
    pub model_len: usize,
    /// Timeout for connecting to the server.
    pub timeout: Duration,
}

/// Computes gradients for a server until the server reports that the run is over. Returns the number of vectors sent.
///
/// # Errors
/// Fails if an environment fails, if the server does not respond, or if the lengths of the server's vectors and model
/// differ from those in `options`.
pub fn work(
    local: Box<dyn LocalHalf>,
    options: &AsyncClientOptions,
    stop: Arc<AtomicBool>,
) -> Result<u64, TrainError> {
    let peer = SocketAddr::from(options.server);
    let mut stream = connect(options).map_err(|error| failed("cannot connect to", peer, error))?;
    greet(&mut stream, options).map_err(|error| failed("the server at", peer, error))?;
    let mut local = LocalSide::new(local, stop);
    let mut model = vec![0.0; options.model_len];
    let mut vector = vec![0.0; options.vector_len];
    let mut sent = 0;
    loop {
        let answer =
            receive(&mut stream, &mut model).map_err(|error| failed("the server at", peer, error))?;
        if answer.is_over {
            return Ok(sent);
        }
        if sent > 0 && !answer.applied {
            local.keep_tail(&vector);
        }
        local.fill(&model, &mut vector)?;
        let send = stream
            .write_all(&answer.number.to_le_bytes())
            .and_then(|()| stream.write_all(bytemuck::cast_slice(&vector)));
        send.map_err(|error| failed("the server at", peer, error))?;
        sent += 1;
    }
}

struct Answer {
    number: u64,
    applied: bool,
    is_over: bool,
}

fn receive(stream: &mut TcpStream, model: &mut [f32]) -> std::io::Result<Answer> {
    let number = read_u64(stream)?;
    let (applied, is_over) = (read_u32(stream)? != 0, read_u32(stream)? != 0);
    stream.read_exact(bytemuck::cast_slice_mut(model))?;
    Ok(Answer { number, applied, is_over })
}

fn connect(options: &AsyncClientOptions) -> std::io::Result<TcpStream> {
    let begin = Instant::now();
    loop {
        match TcpStream::connect(options.server) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                return Ok(stream);
            }
            Err(error) if begin.elapsed() > options.timeout => return Err(error),
            Err(_) => std::thread::sleep(CONNECT_RETRY),
        }
    }
}

fn greet(stream: &mut TcpStream, options: &AsyncClientOptions) -> std::io::Result<()> {
    let own = greeting(options.vector_len, options.model_len);
    stream.write_all(&own)?;
    let mut theirs = [0; GREETING_LEN_BYTES];
    stream.read_exact(&mut theirs)?;
    if !theirs.starts_with(&MAGIC) {
        return Err(std::io::Error::other("it is not an asynchronous parameter server"));
    }
    if theirs == own {
        return Ok(());
    }
    let [vector_len, model_len] = lengths(theirs);
    Err(std::io::Error::other(format!(
        "its job has vectors of {vector_len} floats and a model of {model_len} floats, expected {} and {} floats",
        options.vector_len, options.model_len
    )))
}
