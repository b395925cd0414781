//! Zero-copy access to the elements of another library's array, through the buffer protocol (array, memoryview, NumPy)
//! or through DLPack (PyTorch and most other libraries).

// Both protocols pass raw pointers with a description of the memory.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;

use iswitch::ElementType;
use iswitch::worker::Values;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyCapsule};

/// Elements of an array. The array stays alive and is not moved while this value exists.
pub(crate) struct Elements<'py> {
    pointer: *mut c_void,
    len: usize,
    element: ElementType,
    _owner: Owner<'py>,
}

enum Owner<'py> {
    Buffer { _buffer: PyUntypedBuffer },
    // Dropping the unconsumed capsule releases the memory that the array's library has lent.
    DlPack { _capsule: Bound<'py, PyCapsule> },
}

/// Elements borrowed from an [`Elements`], which can be used while the global interpreter lock (GIL) is released.
pub(crate) struct Detached<'a> {
    pointer: *mut c_void,
    len: usize,
    element: ElementType,
    lifetime: PhantomData<&'a mut f32>,
}

// SAFETY: the struct is equivalent to a mutable slice of numbers, which is `Send`.
unsafe impl Send for Detached<'_> {}

impl Detached<'_> {
    pub(crate) fn values(&mut self) -> Values<'_> {
        match self.element {
            ElementType::F32 => Values::F32(self.slice()),
            ElementType::Bf16 => Values::Bf16(self.slice()),
            ElementType::F16 => Values::F16(self.slice()),
        }
    }

    /// Returns the elements as a slice. `T` must have the size of an element.
    fn slice<T>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.element.len_bytes());
        // SAFETY: `Elements` has checked the pointer, the alignment and the length, and outlives this value. Every bit
        // pattern is a valid number of each type in `values`. If Python code writes to the array meanwhile, this is a
        // data race, as with all libraries that work on arrays without the lock; the docstrings say so.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.cast(), self.len) }
    }
}

impl<'py> Elements<'py> {
    /// Borrows a contiguous, writable array of 32-bit or 16-bit floats in CPU memory.
    ///
    /// # Errors
    /// `TypeError` if the object is not an array, or if its elements are not 32-bit or 16-bit floats; `ValueError` if
    /// the array is read-only, not contiguous or not in CPU memory; and any exception that the array itself raises.
    pub(crate) fn borrow(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        // SAFETY: the object is alive, and the interpreter's lock is held.
        let has_buffer = unsafe { pyo3::ffi::PyObject_CheckBuffer(array.as_ptr()) } == 1;
        let has_dlpack = array.hasattr("__dlpack__")?;
        match (has_buffer.then(|| PyUntypedBuffer::get(array)), has_dlpack) {
            (Some(Ok(buffer)), _) => return Self::from_buffer(buffer),
            // PyO3 rejects buffers without dimensions.
            (Some(Err(_)) | None, true) => return Self::from_dlpack(array),
            (Some(Err(error)), false) => return Err(error),
            (None, false) => {}
        }
        let name = array.get_type().qualname()?;
        Err(PyTypeError::new_err(format!(
            "array is a {name}, expected an object with the buffer protocol or __dlpack__"
        )))
    }

    fn from_buffer(buffer: PyUntypedBuffer) -> PyResult<Self> {
        let format = buffer.format().to_string_lossy().into_owned();
        let code = match format.as_bytes() {
            [code] | [b'=' | b'@', code] => *code,
            [b'<', code] if cfg!(target_endian = "little") => *code,
            [b'>', code] if cfg!(target_endian = "big") => *code,
            _ => b'?',
        };
        // The buffer protocol has no code for bfloat16.
        let element = match code {
            b'f' => ElementType::F32,
            b'e' => ElementType::F16,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "array has format {format:?}, expected \"f\" (float32) or \"e\" (float16)"
                )));
            }
        };
        if buffer.readonly() {
            return Err(PyValueError::new_err(
                "array is read-only, expected a writable array, because the sum replaces its contents",
            ));
        }
        if !buffer.is_c_contiguous() {
            return Err(not_contiguous());
        }
        if buffer.item_size() != element.len_bytes() {
            return Err(PyTypeError::new_err(format!(
                "array has elements of {} bytes, expected {} ({element})",
                buffer.item_size(),
                element.len_bytes()
            )));
        }
        let (pointer, len) = (buffer.buf_ptr(), buffer.item_count());
        Self::checked(pointer, (len, element), Owner::Buffer { _buffer: buffer })
    }

    fn from_dlpack(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let newest = [("max_version", (1, 0))].into_py_dict(py)?;
        let lent = match array.call_method("__dlpack__", (), Some(&newest)) {
            // Libraries that predate DLPack 1.0 do not accept `max_version`.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => array.call_method0("__dlpack__"),
            lent => lent,
        }?;
        let capsule = lent
            .cast_into::<PyCapsule>()
            .map_err(|_| PyTypeError::new_err("__dlpack__ did not return a DLPack capsule"))?;
        let tensor = tensor_of(&capsule)?;
        let element = tensor.element()?;
        let len = tensor.check()?;
        let first = tensor.first_element(len, element)?;
        Self::checked(first, (len, element), Owner::DlPack { _capsule: capsule })
    }

    fn checked(
        pointer: *mut c_void,
        (len, element): (usize, ElementType),
        owner: Owner<'py>,
    ) -> PyResult<Self> {
        let alignment = element.len_bytes();
        if !pointer.addr().is_multiple_of(alignment) {
            return Err(PyValueError::new_err(format!(
                "array is misaligned, expected an address that is a multiple of {alignment} bytes"
            )));
        }
        // The pointer of an empty array may be null or dangling.
        let pointer = if len == 0 { std::ptr::dangling_mut::<f32>().cast() } else { pointer };
        if pointer.is_null() {
            return Err(PyValueError::new_err(
                "array has a null data pointer, expected a pointer to its elements",
            ));
        }
        Ok(Self { pointer, len, element, _owner: owner })
    }

    /// Returns the elements in a form that can be used while the global interpreter lock (GIL) is released.
    pub(crate) fn detached(&mut self) -> Detached<'_> {
        let Self { pointer, len, element, .. } = *self;
        Detached { pointer, len, element, lifetime: PhantomData }
    }
}

/// Returns the tensor of a DLPack capsule.
fn tensor_of<'a>(capsule: &'a Bound<'_, PyCapsule>) -> PyResult<&'a Tensor> {
    let misplaced = || {
        PyValueError::new_err("the DLPack capsule has a misaligned pointer, expected the address of a tensor")
    };
    if !capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        let pointer = capsule.pointer_checked(Some(c"dltensor"))?.cast::<Tensor>();
        if !pointer.is_aligned() {
            return Err(misplaced());
        }
        // SAFETY: capsules with this name point to this struct, which lives as long as the capsule.
        return Ok(unsafe { pointer.as_ref() });
    }
    let pointer = capsule.pointer_checked(Some(c"dltensor_versioned"))?.cast::<VersionedTensor>();
    if !pointer.is_aligned() {
        return Err(misplaced());
    }
    // SAFETY: as above. Every version of the struct begins with its version number; the other fields are read only if
    // the version is 1.x.
    let managed = unsafe { pointer.as_ref() };
    if managed.version[0] != 1 {
        let version = managed.version;
        return Err(PyTypeError::new_err(format!(
            "the DLPack capsule has version {version:?}, expected 1.x"
        )));
    }
    if managed.flags & READ_ONLY != 0 {
        return Err(PyValueError::new_err(
            "array is read-only, expected a writable array, because the sum replaces its contents",
        ));
    }
    Ok(&managed.tensor)
}

fn not_contiguous() -> PyErr {
    PyValueError::new_err("array is not contiguous, expected elements in row-major order without gaps")
}

/// The struct `DLTensor` of dlpack.h.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The struct `DLManagedTensorVersioned` of dlpack.h. The older struct `DLManagedTensor` has no version field and
/// begins with the tensor instead.
#[repr(C)]
struct VersionedTensor {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

/// Flag of a read-only tensor.
const READ_ONLY: u64 = 1;
/// Device type of CPU memory.
const CPU: i32 = 1;
/// Type code of IEEE 754 floating-point numbers.
const FLOAT: u8 = 2;
/// Type code of bfloat16.
const BFLOAT: u8 = 4;
/// Maximum number of dimensions, equal to the limit of NumPy and PyTorch. A tensor with more dimensions is rejected as
/// invalid.
const MAX_DIMENSIONS: i32 = 64;
/// Maximum number of floats in a slice.
const MAX_FLOATS: i64 = isize::MAX as i64 / size_of::<f32>() as i64;

impl Tensor {
    /// Returns the type of the elements. Returns an error if the switch cannot sum elements of this type.
    fn element(&self) -> PyResult<ElementType> {
        let element = (self.type_code, self.type_bits, self.type_lanes);
        match element {
            (FLOAT, 32, 1) => Ok(ElementType::F32),
            (FLOAT, 16, 1) => Ok(ElementType::F16),
            (BFLOAT, 16, 1) => Ok(ElementType::Bf16),
            _ => Err(PyTypeError::new_err(format!(
                "array has elements of DLPack type {element:?}, expected float32 (2, 32, 1), float16 (2, 16, 1) or \
                 bfloat16 (4, 16, 1)"
            ))),
        }
    }

    /// Checks that this is a contiguous tensor on the CPU, and returns its number of elements.
    fn check(&self) -> PyResult<usize> {
        if self.device_type != CPU {
            let (kind, id) = (self.device_type, self.device_id);
            return Err(PyValueError::new_err(format!(
                "array is on DLPack device ({kind}, {id}), expected the CPU (1, 0)"
            )));
        }
        let (shape, strides) = self.shape_and_strides()?;
        if let Some(axis) = shape.iter().position(|size| *size < 0) {
            return Err(PyValueError::new_err(format!(
                "array has size {} in dimension {axis}, expected at least 0",
                shape[axis]
            )));
        }
        if shape.contains(&0) {
            return Ok(0);
        }
        let mut len: i64 = 1;
        for (axis, size) in shape.iter().enumerate().rev() {
            if *size > 1 && strides.is_some_and(|strides| strides[axis] != len) {
                return Err(not_contiguous());
            }
            len = len.checked_mul(*size).filter(|len| *len <= MAX_FLOATS).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "array has shape {shape:?}, expected at most {MAX_FLOATS} elements"
                ))
            })?;
        }
        Ok(len as usize)
    }

    fn shape_and_strides(&self) -> PyResult<(&[i64], Option<&[i64]>)> {
        if !(0..=MAX_DIMENSIONS).contains(&self.dimensions) {
            return Err(PyValueError::new_err(format!(
                "array has {} dimensions, expected 0 to {MAX_DIMENSIONS}",
                self.dimensions
            )));
        }
        let count = self.dimensions as usize;
        if count == 0 {
            return Ok((&[], None));
        }
        if self.shape.is_null() {
            return Err(PyValueError::new_err(format!("array has {count} dimensions, but no shape")));
        }
        if !self.shape.is_aligned() || !self.strides.is_aligned() {
            return Err(PyValueError::new_err(
                "the shape or strides of array are misaligned, expected addresses that are multiples of 8 bytes",
            ));
        }
        // SAFETY: the pointers are not null and are aligned, and the protocol guarantees that each points to one number
        // per dimension. Null strides mean a contiguous tensor.
        unsafe {
            let shape = std::slice::from_raw_parts(self.shape, count);
            let strides = (!self.strides.is_null()).then(|| std::slice::from_raw_parts(self.strides, count));
            Ok((shape, strides))
        }
    }

    /// Returns the address of the first element of a tensor with `len` elements.
    fn first_element(&self, len: usize, element: ElementType) -> PyResult<*mut c_void> {
        if len == 0 || self.data.is_null() {
            // The caller rejects a null pointer unless the tensor is empty.
            return Ok(std::ptr::null_mut());
        }
        let begin =
            usize::try_from(self.byte_offset).ok().and_then(|offset| self.data.addr().checked_add(offset));
        let end = begin.and_then(|begin| begin.checked_add(len * element.len_bytes()));
        if end.is_none() {
            return Err(PyValueError::new_err(format!(
                "array has byte offset {}, expected an offset such that it ends within the address space",
                self.byte_offset
            )));
        }
        Ok(self.data.wrapping_byte_add(self.byte_offset as usize))
    }
}
