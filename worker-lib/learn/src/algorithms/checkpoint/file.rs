//! A single checkpoint file, which contains named tensors and metadata in the safetensors format.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use iswitch_storage::{Disk, replace};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::super::TrainError;
use super::super::actor_critic::NamedTensor;
use crate::nn::{Adam, Cell};

/// Format version that all checkpoint files contain.
const FORMAT: &str = "iswitch-3";
/// Metadata key of the file's checksum.
const CHECKSUM: &str = "crc32c";
/// Metadata key of the mean return.
const MEAN_RETURN: &str = "mean_return";
/// Eight-digit placeholder for the value of [`CHECKSUM`] while the checksum is computed.
const NO_CHECKSUM: &str = "00000000";

/// Replaces a file atomically; see [`iswitch_storage::replace`].
pub(super) fn write_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    replace(disk, path, bytes).map_err(|error| TrainError::File { path: path.to_owned(), error })
}

pub(super) fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, TrainError> {
    disk.read(path).map_err(|error| TrainError::File { path: path.to_owned(), error })
}

/// Returns the position of the checksum's digits in a file. The digits are in the header, which consists of JSON
/// preceded by a length of eight bytes. The key cannot occur anywhere else in the header, because JSON escapes
/// quotation marks inside strings.
fn checksum_place(bytes: &[u8]) -> Option<Range<usize>> {
    let (len, rest) = bytes.split_first_chunk()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let key = format!("\"{CHECKSUM}\":\"");
    let at = header.windows(key.len()).position(|window| window == key.as_bytes())?;
    let begin = len.len() + at + key.len();
    let place = begin..begin + NO_CHECKSUM.len();
    (place.end <= len.len() + header.len()).then_some(place)
}

/// Computes the CRC-32C of a file. The digits of the checksum itself are replaced by zeros.
fn checksum(bytes: &[u8], place: &Range<usize>) -> u32 {
    let begin = crc32c::crc32c(&bytes[..place.start]);
    let middle = crc32c::crc32c_append(begin, NO_CHECKSUM.as_bytes());
    crc32c::crc32c_append(middle, &bytes[place.end..])
}

/// Writer that collects the tensors and metadata of one file.
#[derive(Debug, Default)]
pub struct Writer {
    tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
    metadata: HashMap<String, String>,
}

impl Writer {
    /// Adds a tensor of f32 values with the given shape, in row-major order.
    pub fn floats(&mut self, name: &str, shape: Vec<usize>, values: &[f32]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push((name.to_owned(), Dtype::F32, shape, bytes));
    }

    /// Adds a vector of f64 values.
    pub fn doubles(&mut self, name: &str, values: &[f64]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push((name.to_owned(), Dtype::F64, vec![values.len()], bytes));
    }

    /// Adds a vector of bytes.
    pub fn bytes(&mut self, name: &str, values: &[u8]) {
        self.tensors.push((name.to_owned(), Dtype::U8, vec![values.len()], values.to_vec()));
    }

    /// Adds the parameters of networks. The names of the tensors are prefixed with `prefix`.
    pub fn parameters(&mut self, prefix: &str, tensors: Vec<NamedTensor>, parameters: &[f32]) {
        for tensor in tensors {
            self.floats(&format!("{prefix}{}", tensor.name), tensor.shape, &parameters[tensor.range]);
        }
    }

    /// Adds the moments and the step count of an Adam optimiser.
    pub fn adam(&mut self, name: &str, adam: &Adam) {
        self.floats(&format!("{name}.first_moment"), vec![adam.first_moment.len()], &adam.first_moment);
        self.floats(&format!("{name}.second_moment"), vec![adam.second_moment.len()], &adam.second_moment);
        self.text(&format!("{name}_steps"), adam.steps.to_string());
    }

    /// Returns the values of all f32 tensors, in the order in which the tensors were added.
    pub fn all_floats(&self) -> Vec<f32> {
        let floats = self.tensors.iter().filter(|(_, dtype, _, _)| *dtype == Dtype::F32);
        floats
            .flat_map(|(_, _, _, bytes)| bytes.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)))
            .collect()
    }

    /// Adds a metadata entry.
    pub fn text(&mut self, key: &str, value: String) {
        self.metadata.insert(key.to_owned(), value);
    }

    /// Adds the mean return of the last 100 episodes of training, if any episode has ended.
    pub fn mean_return(&mut self, mean: Option<f64>) {
        if let Some(mean) = mean {
            self.text(MEAN_RETURN, mean.to_string());
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.text("format", FORMAT.to_owned());
        self.text(CHECKSUM, NO_CHECKSUM.to_owned());
        let views = self.tensors.iter().map(|(name, dtype, shape, bytes)| {
            (
                name,
                TensorView::new(*dtype, shape.clone(), bytes).expect("the shape matches the number of bytes"),
            )
        });
        let mut bytes = serialize(views, Some(self.metadata.clone())).expect("tensor names are unique");
        let place = checksum_place(&bytes).expect("the checksum was written as text");
        let digits = format!("{:08x}", checksum(&bytes, &place));
        bytes[place].copy_from_slice(digits.as_bytes());
        bytes
    }
}

/// Reader of the tensors and metadata of one file. It also creates errors that contain the path of the file.
pub struct Reader<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    metadata: HashMap<String, String>,
    len_bytes: usize,
}

impl<'a> Reader<'a> {
    /// Parses the `bytes` of the file at `path`.
    ///
    /// # Errors
    /// Fails if the file is not a checkpoint, has an unsupported format version, or is damaged.
    pub fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self, TrainError> {
        let refuse = |reason: String| TrainError::Checkpoint { path: path.to_owned(), reason };
        let broken = |error| refuse(format!("it is damaged or not a checkpoint ({error})"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => {
                let computed = checksum_place(bytes).map(|place| format!("{:08x}", checksum(bytes, &place)));
                if computed.is_none() || metadata.get(CHECKSUM) != computed.as_ref() {
                    return Err(refuse("it is damaged: its checksum does not match its contents".to_owned()));
                }
                Ok(Self { path, tensors, metadata, len_bytes: bytes.len() })
            }
            Some(other) => Err(refuse(format!("its format is {other}, expected {FORMAT}"))),
            None => Err(refuse("it is not an iSwitch checkpoint".to_owned())),
        }
    }

    /// Returns an error that contains the path of the file and the given reason.
    pub fn refuse(&self, reason: String) -> TrainError {
        TrainError::Checkpoint { path: self.path.to_owned(), reason }
    }

    /// Returns a metadata entry.
    ///
    /// # Errors
    /// Fails if the entry is missing.
    pub fn text(&self, key: &str) -> Result<&str, TrainError> {
        let value = self.metadata.get(key).map(String::as_str);
        value.ok_or_else(|| self.refuse(format!("{key} is missing")))
    }

    /// Returns a number from the metadata.
    ///
    /// # Errors
    /// Fails if the entry is missing or not a number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, TrainError> {
        self.text(key)?.parse().map_err(|_| self.refuse(format!("{key} is not a number")))
    }

    /// Returns the mean return of the last 100 episodes of training. It is absent if no episode had ended when the file
    /// was written, or if the file was written by an earlier version of the program that did not record it.
    pub fn mean_return(&self) -> Option<f64> {
        self.number(MEAN_RETURN).ok()
    }

    fn tensor(&self, name: &str, dtype: Dtype) -> Result<TensorView<'_>, TrainError> {
        match self.tensors.tensor(name) {
            Ok(view) if view.dtype() == dtype && view.shape().len() <= 2 => Ok(view),
            Ok(view) => {
                let (found, shape) = (view.dtype(), view.shape());
                Err(self.refuse(format!(
                    "{name} has type {found:?} and shape {shape:?}, expected {dtype:?} and at most 2 dimensions"
                )))
            }
            Err(error) => Err(self.refuse(format!("{name}: {error}"))),
        }
    }

    /// Returns whether the file contains a tensor with this name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// Returns the number of values in a tensor. It is 1 for a tensor without dimensions.
    ///
    /// # Errors
    /// Fails if the tensor is missing or does not have the type `dtype`.
    pub fn len(&self, name: &str, dtype: Dtype) -> Result<usize, TrainError> {
        Ok(self.tensor(name, dtype)?.shape().iter().product())
    }

    /// Returns the number of values in an f32 tensor.
    ///
    /// # Errors
    /// Fails if the tensor is missing or does not have the type f32.
    pub fn len_f32(&self, name: &str) -> Result<usize, TrainError> {
        self.len(name, Dtype::F32)
    }

    /// Returns the values of an f32 tensor, `[len]`.
    ///
    /// # Errors
    /// Fails if the tensor is missing, does not have the type f32, or does not have `len` values.
    pub fn floats(&self, name: &str, len: usize) -> Result<Vec<f32>, TrainError> {
        let view = self.tensor(name, Dtype::F32)?;
        let values: Vec<f32> =
            view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        self.check_len(name, values.len(), len)?;
        Ok(values)
    }

    /// Returns the values of an f64 tensor, `[len]`.
    ///
    /// # Errors
    /// Fails if the tensor is missing, does not have the type f64, or does not have `len` values.
    pub fn doubles(&self, name: &str, len: usize) -> Result<Vec<f64>, TrainError> {
        let view = self.tensor(name, Dtype::F64)?;
        let values: Vec<f64> =
            view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        self.check_len(name, values.len(), len)?;
        Ok(values)
    }

    /// Returns the bytes of a tensor, `[len]`.
    ///
    /// # Errors
    /// Fails if the tensor is missing, does not have the type u8, or does not have `len` bytes.
    pub fn bytes(&self, name: &str, len: usize) -> Result<&[u8], TrainError> {
        let view = self.tensors.tensor(name).map_err(|error| self.refuse(format!("{name}: {error}")))?;
        if view.dtype() != Dtype::U8 {
            return Err(self.refuse(format!("{name} has type {:?}, expected U8", view.dtype())));
        }
        self.check_len(name, view.data().len(), len)?;
        Ok(view.data())
    }

    /// Returns the parameters that [`Writer::parameters`] wrote, `[parameter_count]`. Does not allocate more memory
    /// than the file's contents can fill.
    ///
    /// # Errors
    /// Fails if a tensor is missing, does not have the type f32, or does not have the expected length.
    pub fn parameters(&self, prefix: &str, tensors: Vec<NamedTensor>) -> Result<Vec<f32>, TrainError> {
        let count = tensors.iter().map(|tensor| tensor.range.end).max().unwrap_or(0);
        self.check_parameters(count)?;
        let mut parameters = vec![0.0; count];
        for tensor in tensors {
            let values = self.floats(&format!("{prefix}{}", tensor.name), tensor.range.len())?;
            parameters[tensor.range].copy_from_slice(&values);
        }
        Ok(parameters)
    }

    /// Checks that the file is large enough for `count` parameters. Must be called before networks are allocated.
    ///
    /// # Errors
    /// Fails if the file is too small for that number of parameters.
    pub fn check_parameters(&self, count: usize) -> Result<(), TrainError> {
        if count <= self.len_bytes / size_of::<f32>() {
            return Ok(());
        }
        Err(self.refuse(format!("it is too small to hold {count} parameters")))
    }

    /// Restores an Adam optimiser of `parameters` floats to the state that [`Writer::adam`] wrote.
    ///
    /// # Errors
    /// Fails if an entry is missing, or if the moments do not have the type f32 or do not have `parameters` values.
    pub fn adam(&self, name: &str, parameters: usize, adam: &mut Adam) -> Result<(), TrainError> {
        adam.first_moment = self.floats(&format!("{name}.first_moment"), parameters)?;
        adam.second_moment = self.floats(&format!("{name}.second_moment"), parameters)?;
        adam.steps = self.number(&format!("{name}_steps"))?;
        Ok(())
    }

    /// Checks that the file is large enough for layers of the widths `hidden` and for recurrent layers of this
    /// kind and width. Must be called before networks are allocated.
    ///
    /// # Errors
    /// Fails if the file is too small for the weights.
    pub fn check_widths(&self, hidden: &[usize], memory: Option<(Cell, usize)>) -> Result<(), TrainError> {
        let floats = self.len_bytes / size_of::<f32>();
        let fits = |len: Option<usize>| len.is_some_and(|len| len <= floats);
        let refuse = |widths: String| {
            self.refuse(format!("{widths}, which is too large for a file of {floats} floats"))
        };
        if !fits(hidden.iter().copied().try_fold(0, usize::checked_add))
            || !hidden.windows(2).all(|pair| fits(pair[0].checked_mul(pair[1])))
        {
            return Err(refuse(format!("hidden is {hidden:?}")));
        }
        match memory {
            Some((cell, width)) if !fits(width.checked_mul(width)) => {
                Err(refuse(format!("{} is {width}", cell.name())))
            }
            _ => Ok(()),
        }
    }

    fn check_len(&self, name: &str, actual: usize, expected: usize) -> Result<(), TrainError> {
        if actual == expected {
            return Ok(());
        }
        Err(self.refuse(format!("{name} has {actual} numbers; this run needs {expected}")))
    }
}
