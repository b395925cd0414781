//! Version 3 of the protocol between this process and its child process. All numbers are little-endian.
//!
//! A message consists of its length in bytes (u32), its kind (u8) and a body; the length includes the kind.
//!
//! | request | kind | body |
//! |---|---|---|
//! | make | 1 | version u32, environments u32, whether to render u32, EnvPool threads u32 (0: Gymnasium), id in UTF-8 |
//! | reset | 2 | environment u32, seed u32 |
//! | step | 3 | count u32, then for each environment: number u32, action |
//! | replay | 4 | environment u32, seed u32, count u32, actions |
//! | render | 5 | environment u32 |
//!
//! | answer | kind | body |
//! |---|---|---|
//! | made | 1 | version u32, then a [`Description`] |
//! | observed | 2 | count u32, then each: reward f64, flags u8 (1 terminated, 2 truncated, 4 life lost), observation |
//! | replayed | 3 | whether the episode ended u8, count u32, the last observations, oldest first |
//! | alive | 4 | empty: the request is still being processed |
//! | refused | 5 | kind u8 (1 not installed, 2 not supported, 3 unknown), text in UTF-8 |
//! | rendered | 7 | frames per second f64, height u32, width u32, red, green and blue of each pixel |
//! | raised | 6 | text in UTF-8: an environment raised an exception; the child then exits |
//!
//! An action is a u32 or one f32 per dimension. An observation is a sequence of f32 values, or the bytes of an image.

use super::{ChildError, Package, Refusal};
use crate::env::scene::Frame;
use crate::nn::Image;

pub(super) const VERSION: u32 = 3;
/// Maximum length of an answer, in bytes; a longer answer is a protocol error.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 28;

const MAKE: u8 = 1;
const RESET: u8 = 2;
const STEP: u8 = 3;
const REPLAY: u8 = 4;
const RENDER: u8 = 5;

const MADE: u8 = 1;
const OBSERVED: u8 = 2;
const REPLAYED: u8 = 3;
pub(super) const ALIVE: u8 = 4;
const REFUSED: u8 = 5;
const RAISED: u8 = 6;
const RENDERED: u8 = 7;

const TERMINATED: u8 = 1;
const TRUNCATED: u8 = 2;
const LIFE_LOST: u8 = 4;

/// Kind and size of the observations of a child's environments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Observations {
    /// Vectors with this number of elements.
    Floats(usize),
    /// Images. The agent receives a stack of the `stack` most recent images.
    Images { frame: Image, stack: usize },
}

impl Observations {
    /// Returns the length of one encoded observation, in bytes.
    pub(super) fn len_bytes(&self) -> usize {
        match self {
            Self::Floats(len) => 4 * len,
            Self::Images { frame, .. } => frame.len(),
        }
    }
}

/// Kind and size of the actions of a child's environments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Actions {
    /// Number of choices.
    Discrete(usize),
    /// Minimum and maximum of each dimension, possibly infinite.
    Continuous(Vec<[f32; 2]>),
}

impl Actions {
    /// Returns the length of one encoded action, in bytes.
    pub(super) fn len_bytes(&self) -> usize {
        match self {
            Self::Discrete(_) => 4,
            Self::Continuous(bounds) => 4 * bounds.len(),
        }
    }
}

/// Description of a child's environments. It is encoded as: kind of observation u8 (0 floats, 1 image); height, width,
/// channels and number of stacked frames u32; kind of action u8 (0 discrete, 1 continuous); number of choices or
/// dimensions u32; number of the first choice i64, or minimum and maximum of each dimension f32; maximum number of
/// steps of an episode u32 (0: no limit); return at which the task is solved f64 (NaN: unknown).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Description {
    pub(super) observations: Observations,
    pub(super) actions: Actions,
    /// Number of the first choice, as defined by the environment. The child process adds it to the index of the choice
    /// that this process sends.
    pub(super) first_choice: i64,
    pub(super) episode_steps_max: Option<u32>,
    pub(super) solved_return: Option<f64>,
}

/// Outcome of one environment's step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observed<'a> {
    pub(super) reward: f64,
    pub(super) terminated: bool,
    pub(super) truncated: bool,
    pub(super) life_lost: bool,
    pub(super) observation: &'a [u8],
}

/// State of an episode after it has been replayed.
#[derive(Debug, PartialEq)]
pub(super) struct Replayed<'a> {
    pub(super) ended: bool,
    /// The most recent observations, oldest first.
    pub(super) observations: Vec<&'a [u8]>,
}

pub(super) fn message(kind: u8, numbers: &[u32], rest: &[u8]) -> Vec<u8> {
    let len = 1 + 4 * numbers.len() + rest.len();
    let mut bytes = Vec::with_capacity(4 + len);
    bytes.extend((len as u32).to_le_bytes());
    bytes.push(kind);
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend(rest);
    bytes
}

pub(super) fn make(id: &str, count: usize, renders: bool, package: Package) -> Vec<u8> {
    let threads = match package {
        Package::Gymnasium => 0,
        Package::EnvPool { threads } => threads as u32,
    };
    message(MAKE, &[VERSION, count as u32, u32::from(renders), threads], id.as_bytes())
}

pub(super) fn reset(index: usize, seed: u32) -> Vec<u8> {
    message(RESET, &[index as u32, seed], &[])
}

/// Encodes a step request. `actions` yields the index of each environment and its encoded action.
pub(super) fn step<'a>(actions: impl Iterator<Item = (usize, &'a [u8])>) -> Vec<u8> {
    let (mut count, mut body) = (0_u32, Vec::new());
    for (index, action) in actions {
        count += 1;
        body.extend((index as u32).to_le_bytes());
        body.extend(action);
    }
    message(STEP, &[count], &body)
}

/// Encodes a replay request. `actions` holds the encoded actions of the episode, concatenated.
pub(super) fn replay(index: usize, seed: u32, count: usize, actions: &[u8]) -> Vec<u8> {
    message(REPLAY, &[index as u32, seed, count as u32], actions)
}

pub(super) fn render(index: usize) -> Vec<u8> {
    message(RENDER, &[index as u32], &[])
}

/// Parser of an answer.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks that an answer is of the given kind, and creates a reader of its body.
    fn new(answer: &'a [u8], kind: u8) -> Result<Self, ChildError> {
        match answer.split_first() {
            Some((actual, rest)) if *actual == kind => Ok(Self(rest)),
            Some((&REFUSED, [kind, text @ ..])) => Err(ChildError::Refused {
                kind: Refusal::of(*kind),
                text: String::from_utf8_lossy(text).into_owned(),
            }),
            Some((&RAISED, text)) => Err(ChildError::Raised(String::from_utf8_lossy(text).into_owned())),
            Some((other, _)) => {
                Err(ChildError::Protocol(format!("its response is of kind {other}, expected {kind}")))
            }
            None => Err(ChildError::Protocol(format!("its response is empty, expected kind {kind}"))),
        }
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], ChildError> {
        let short = || ChildError::Protocol("its answer is too short".to_owned());
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ChildError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, ChildError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn number(&mut self) -> Result<u32, ChildError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn signed(&mut self) -> Result<i64, ChildError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn double(&mut self) -> Result<f64, ChildError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, ChildError> {
        (0..count).map(|_| Ok(f32::from_le_bytes(self.array()?))).collect()
    }

    fn end(&self) -> Result<(), ChildError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(ChildError::Protocol("its answer is too long".to_owned()))
        }
    }
}

pub(super) fn made(answer: &[u8]) -> Result<Description, ChildError> {
    let mut reader = Reader::new(answer, MADE)?;
    let version = reader.number()?;
    if version != VERSION {
        return Err(ChildError::Protocol(format!("its protocol version is {version}, expected {VERSION}")));
    }
    let observations = observations(&mut reader)?;
    let mut first_choice = 0;
    let actions = match (reader.byte()?, reader.number()? as usize) {
        (0, choices) if choices > 0 => {
            first_choice = reader.signed()?;
            Actions::Discrete(choices)
        }
        (1, dim) if (1..=MESSAGE_BYTES_MAX / 8).contains(&dim) => {
            let (low, high) = (reader.floats(dim)?, reader.floats(dim)?);
            Actions::Continuous(low.into_iter().zip(high).map(|(low, high)| [low, high]).collect())
        }
        (kind, size) => {
            return Err(ChildError::Protocol(format!(
                "its actions have the unsupported kind {kind} or size {size}"
            )));
        }
    };
    let steps = reader.number()?;
    let solved = reader.double()?;
    reader.end()?;
    let solved_return = (!solved.is_nan()).then_some(solved);
    let episode_steps_max = (steps > 0).then_some(steps);
    Ok(Description { observations, actions, first_choice, episode_steps_max, solved_return })
}

fn observations(reader: &mut Reader<'_>) -> Result<Observations, ChildError> {
    let kind = reader.byte()?;
    let sizes = [reader.number()?, reader.number()?, reader.number()?, reader.number()?];
    let sizes @ [height, width, channels, stack] = sizes.map(|size| size as usize);
    let len = sizes.iter().try_fold(4_usize, |product, size| product.checked_mul(*size));
    match (kind, len) {
        (0, Some(4..=MESSAGE_BYTES_MAX)) => Ok(Observations::Floats(height * width * channels)),
        (1, Some(4..=MESSAGE_BYTES_MAX)) => {
            Ok(Observations::Images { frame: Image { height, width, channels }, stack })
        }
        _ => Err(ChildError::Protocol(format!(
            "its observations have the unsupported kind {kind} or size {sizes:?}"
        ))),
    }
}

/// Decodes the outcomes of `count` environments, each with an observation of `len_bytes` bytes.
pub(super) fn observed(
    answer: &[u8],
    count: usize,
    len_bytes: usize,
) -> Result<Vec<Observed<'_>>, ChildError> {
    let mut reader = Reader::new(answer, OBSERVED)?;
    let actual = reader.number()? as usize;
    if actual != count {
        return Err(ChildError::Protocol(format!("it answered for {actual} environments, expected {count}")));
    }
    let mut each = || {
        let (reward, flags, observation) = (reader.double()?, reader.byte()?, reader.bytes(len_bytes)?);
        let has = |flag| flags & flag != 0;
        let (terminated, truncated, life_lost) = (has(TERMINATED), has(TRUNCATED), has(LIFE_LOST));
        Ok(Observed { reward, terminated, truncated, life_lost, observation })
    };
    let all = (0..count).map(|_| each()).collect::<Result<_, ChildError>>()?;
    reader.end()?;
    Ok(all)
}

pub(super) fn replayed(answer: &[u8], len_bytes: usize) -> Result<Replayed<'_>, ChildError> {
    let mut reader = Reader::new(answer, REPLAYED)?;
    let (ended, count) = (reader.byte()? != 0, reader.number()? as usize);
    let (actual, expected) = (reader.0.len(), count.checked_mul(len_bytes));
    if actual == 0 || Some(actual) != expected {
        return Err(ChildError::Protocol(format!(
            "its replay has {actual} bytes for {count} observations of {len_bytes} bytes each"
        )));
    }
    Ok(Replayed { ended, observations: reader.0.chunks_exact(len_bytes).collect() })
}

/// Decodes an image, and the rate at which images are to be displayed, in images per second.
pub(super) fn rendered(answer: &[u8]) -> Result<(Frame, f64), ChildError> {
    let mut reader = Reader::new(answer, RENDERED)?;
    let rate = reader.double()?;
    let [height, width] = [reader.number()? as usize, reader.number()? as usize];
    let (actual, expected) =
        (reader.0.len(), height.checked_mul(width).and_then(|pixels| pixels.checked_mul(3)));
    if Some(actual) != expected || actual == 0 {
        let error =
            format!("its image of {width} x {height} pixels has {actual} bytes, expected 3 per pixel");
        return Err(ChildError::Protocol(error));
    }
    if !rate.is_finite() || rate <= 0.0 {
        return Err(ChildError::Protocol(format!(
            "it displays {rate} images per second, expected a positive number"
        )));
    }
    Ok((Frame { width, height, rgb: reader.0.to_vec() }, rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A description of an image environment with two choices.
    fn description() -> Vec<u8> {
        let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        let kind = |kind: u8| vec![kind];
        let parts = [
            kind(MADE),
            numbers(&[VERSION]),
            kind(1),
            numbers(&[3, 5, 1, 4]),
            kind(0),
            numbers(&[2]),
            (-4_i64).to_le_bytes().to_vec(),
            numbers(&[7]),
        ];
        [parts.concat(), f64::NAN.to_le_bytes().to_vec()].concat()
    }

    #[test]
    fn an_environment_description_is_parsed() {
        let frame = Image { height: 3, width: 5, channels: 1 };
        let expected = Description {
            observations: Observations::Images { frame, stack: 4 },
            actions: Actions::Discrete(2),
            first_choice: -4,
            episode_steps_max: Some(7),
            solved_return: None,
        };
        assert_eq!(made(&description()).unwrap(), expected);
    }

    #[test]
    fn a_description_of_another_version_or_length_is_refused() {
        let mut bytes = description();
        bytes[1] = 9;
        assert_eq!(made(&bytes).unwrap_err().to_string(), "its protocol version is 9, expected 3");
        for len in 1..description().len() {
            assert!(matches!(made(&description()[..len]), Err(ChildError::Protocol(_))), "{len}");
        }
        assert!(made(&[description(), vec![0]].concat()).is_err());
    }

    #[test]
    fn an_image_is_parsed_if_its_size_is_that_of_its_pixels() {
        let answer = |width: u32, bytes: usize| {
            let head =
                [&[RENDERED][..], &30_f64.to_le_bytes(), &2_u32.to_le_bytes(), &width.to_le_bytes()].concat();
            [head, vec![7; bytes]].concat()
        };
        let frame = Frame { width: 3, height: 2, rgb: vec![7; 18] };
        assert_eq!(rendered(&answer(3, 18)).unwrap(), (frame, 30.0));
        for (width, bytes) in [(3, 17), (4, 18), (0, 0), (u32::MAX, 18)] {
            assert!(matches!(rendered(&answer(width, bytes)), Err(ChildError::Protocol(_))), "{width}");
        }
    }

    #[test]
    fn request_encodings_match_the_documentation() {
        let head = [18, 0, 0, 0, 1, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
        let made =
            |threads, package| (make("A", 2, true, package), [&head[..], &[threads, 0, 0, 0, b'A']].concat());
        for (actual, expected) in [made(0, Package::Gymnasium), made(5, Package::EnvPool { threads: 5 })] {
            assert_eq!(actual, expected);
        }
        assert_eq!(render(3), [5, 0, 0, 0, 5, 3, 0, 0, 0]);
        assert_eq!(reset(1, 258), [9, 0, 0, 0, 2, 1, 0, 0, 0, 2, 1, 0, 0]);
        let actions = [(3, &[7_u8, 0, 0, 0][..])];
        assert_eq!(step(actions.into_iter()), [13, 0, 0, 0, 3, 1, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(replay(0, 5, 1, &[9])[4..], [4, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 9]);
    }

    proptest! {
        /// Any output of the child decodes to an answer or an error.
        #[test]
        fn arbitrary_answers_cause_no_panic(
            kind in 0_u8..8,
            body in prop::collection::vec(any::<u8>(), 0..60),
            len in 0_usize..9,
        ) {
            let answer = [&[kind][..], &body].concat();
            let _ = made(&answer);
            let _ = rendered(&answer);
            let _ = replayed(&answer, len);
            if let Ok(all) = observed(&answer, 1, len) {
                prop_assert_eq!(all[0].observation.len(), len);
                prop_assert_eq!(body.len(), 13 + len);
            }
        }
    }
}
