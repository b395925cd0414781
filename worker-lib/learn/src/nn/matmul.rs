//! Matrix product over slices; a safe interface to the `gemm-f32` crate.
#![allow(unsafe_code)]

use std::ops::Range;

use gemm_common::Parallelism;

/// A dense read-only matrix: row-major, consecutive columns of a row-major one, or the transpose of either.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRef<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> MatrixRef<'a> {
    /// Views `data` as a row-major matrix of `rows` x `cols`.
    ///
    /// # Panics
    /// Panics if `data` does not hold exactly `rows * cols` floats.
    pub fn row_major(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::columns(data, (rows, cols), 0..cols)
    }

    /// Views the columns `range` of a row-major matrix of `shape` (rows, columns).
    ///
    /// # Panics
    /// Panics if `data` does not hold exactly the whole matrix, or if the matrix lacks one of the columns.
    pub fn columns(data: &'a [f32], shape: (usize, usize), range: Range<usize>) -> Self {
        check_columns(data.len(), shape, &range);
        let start = range.start.min(data.len());
        Self { data: &data[start..], rows: shape.0, cols: range.len(), row_stride: shape.1, col_stride: 1 }
    }

    /// Returns the transpose, `cols` x `rows`, without moving data.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }
}

/// A dense, writable matrix: row-major, or consecutive columns of a row-major one.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
}

impl<'a> MatrixMut<'a> {
    /// Views `data` as a row-major matrix of `rows` x `cols`.
    ///
    /// # Panics
    /// Panics if `data` does not hold exactly `rows * cols` floats.
    pub fn row_major(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        Self::columns(data, (rows, cols), 0..cols)
    }

    /// Views the columns `range` of a row-major matrix of `shape` (rows, columns).
    ///
    /// # Panics
    /// Panics if `data` does not hold exactly the whole matrix, or if the matrix lacks one of the columns.
    pub fn columns(data: &'a mut [f32], shape: (usize, usize), range: Range<usize>) -> Self {
        check_columns(data.len(), shape, &range);
        let start = range.start.min(data.len());
        Self { data: &mut data[start..], rows: shape.0, cols: range.len(), row_stride: shape.1 }
    }
}

fn check_columns(len: usize, (rows, cols): (usize, usize), range: &Range<usize>) {
    assert_eq!(len, element_count(rows, cols), "a {rows} x {cols} matrix");
    assert!(range.start <= range.end && range.end <= cols, "columns {range:?} of {cols}");
}

fn element_count(rows: usize, cols: usize) -> usize {
    rows.checked_mul(cols).expect("the matrix must fit in memory")
}

/// Computes `out = lhs * rhs`, or `out += lhs * rhs` if `accumulate` is true, on `threads` threads (feature `threads`).
/// A worker that shares its cores with other workers should use one thread, because a thread pool performs badly if its
/// cores are busy. Small products always use one thread.
///
/// # Panics
/// Panics if the shapes do not match.
pub fn matmul(out: MatrixMut<'_>, accumulate: bool, lhs: MatrixRef<'_>, rhs: MatrixRef<'_>, threads: usize) {
    let MatrixMut { data, rows, cols, row_stride } = out;
    assert_eq!(lhs.cols, rhs.rows, "inner dimensions");
    assert_eq!((rows, cols), (lhs.rows, rhs.cols), "outer dimensions");
    // The kernel prefers a destination with contiguous columns. For a row-major destination, this is the transposed
    // product, (rhs^T lhs^T)^T. With a single column, the two orders are equally contiguous.
    let (m, n, strides) =
        if cols > 1 { (cols, rows, (row_stride, 1)) } else { (rows, cols, (1, row_stride)) };
    let (a, b) = if cols > 1 { (rhs.transposed(), lhs.transposed()) } else { (lhs, rhs) };
    // SAFETY: the constructor of each of the three matrices checked that its slice begins at the first column viewed
    // and ends with a whole row-major matrix that has these columns. The strides are (row length, 1) or, transposed,
    // (1, row length), so every element that gemm addresses lies inside the slice. `out` is borrowed mutably, so it
    // overlaps neither operand. A stride fits isize because a slice never exceeds isize::MAX bytes. With `accumulate`
    // off, gemm does not read `out`, which is initialised in any case.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            a.cols,
            data.as_mut_ptr(),
            strides.0 as isize,
            strides.1 as isize,
            accumulate,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism(threads),
        );
    }
}

#[cfg(feature = "threads")]
fn parallelism(threads: usize) -> Parallelism {
    if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None }
}

#[cfg(not(feature = "threads"))]
fn parallelism(_threads: usize) -> Parallelism {
    Parallelism::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(matrix: MatrixRef<'_>, row: usize, col: usize) -> f64 {
        f64::from(matrix.data[row * matrix.row_stride + col * matrix.col_stride])
    }

    proptest! {
        #[test]
        fn matmul_agrees_with_the_triple_loop(
            (m, k, n) in (1_usize..40, 1_usize..40, 1_usize..40),
            (flip_lhs, flip_rhs, accumulate) in any::<(bool, bool, bool)>(),
            seed in 0_u32..1000,
        ) {
            let fill = |len: usize, salt: u32| -> Vec<f32> {
                (0..len as u32).map(|i| ((i * 37 + salt * 17 + seed) % 101) as f32 / 50.0 - 1.0).collect()
            };
            let (a, b, start) = (fill(m * k, 1), fill(k * n, 2), fill(m * n, 3));
            let operand = |values, rows, cols, flip: bool| {
                let (stored_rows, stored_cols) = if flip { (cols, rows) } else { (rows, cols) };
                let stored = MatrixRef::row_major(values, stored_rows, stored_cols);
                if flip { stored.transposed() } else { stored }
            };
            let (lhs, rhs) = (operand(&a, m, k, flip_lhs), operand(&b, k, n, flip_rhs));
            let mut out = start.clone();
            matmul(MatrixMut::row_major(&mut out, m, n), accumulate, lhs, rhs, 1);
            for row in 0..m {
                for col in 0..n {
                    let begin = if accumulate { f64::from(start[row * n + col]) } else { 0.0 };
                    let want: f64 = begin + (0..k).map(|i| element(lhs, row, i) * element(rhs, i, col)).sum::<f64>();
                    prop_assert!((f64::from(out[row * n + col]) - want).abs() < 1e-4);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn products_of_columns_agree_with_those_of_copies_and_leave_other_columns_alone(
            (m, k, n) in (1_usize..12, 1_usize..12, 1_usize..12),
            pads in prop::array::uniform3((0_usize..4, 0_usize..4)),
            (transposed, accumulate) in any::<(bool, bool)>(),
        ) {
            let fill = |len: usize, salt: usize| -> Vec<f32> {
                (0..len).map(|i| ((i * 29 + salt) % 47) as f32 / 23.0 - 1.0).collect()
            };
            let stride = |cols: usize, (before, after): (usize, usize)| before + cols + after;
            let range = |cols: usize, (before, _): (usize, usize)| before..before + cols;
            let copied = |data: &[f32], cols: usize, pad: (usize, usize)| -> Vec<f32> {
                data.chunks_exact(stride(cols, pad)).flat_map(|row| row[range(cols, pad)].to_vec()).collect()
            };
            let (lhs_rows, lhs_cols) = if transposed { (k, m) } else { (m, k) };
            let a = fill(lhs_rows * stride(lhs_cols, pads[0]), 1);
            let b = fill(k * stride(n, pads[1]), 2);
            let start = fill(m * stride(n, pads[2]), 3);
            let lhs = MatrixRef::columns(&a, (lhs_rows, stride(lhs_cols, pads[0])), range(lhs_cols, pads[0]));
            let lhs = if transposed { lhs.transposed() } else { lhs };
            let rhs = MatrixRef::columns(&b, (k, stride(n, pads[1])), range(n, pads[1]));
            let mut out = start.clone();
            matmul(
                MatrixMut::columns(&mut out, (m, stride(n, pads[2])), range(n, pads[2])),
                accumulate,
                lhs,
                rhs,
                1,
            );
            let (a, b) = (copied(&a, lhs_cols, pads[0]), copied(&b, n, pads[1]));
            let mut want = copied(&start, n, pads[2]);
            let lhs = MatrixRef::row_major(&a, lhs_rows, lhs_cols);
            let lhs = if transposed { lhs.transposed() } else { lhs };
            matmul(MatrixMut::row_major(&mut want, m, n), accumulate, lhs, MatrixRef::row_major(&b, k, n), 1);
            for (found, want) in copied(&out, n, pads[2]).iter().zip(&want) {
                prop_assert!((found - want).abs() < 1e-4);
            }
            for (found, start) in out.chunks_exact(stride(n, pads[2])).zip(start.chunks_exact(stride(n, pads[2]))) {
                let inside = range(n, pads[2]);
                prop_assert_eq!(&found[..inside.start], &start[..inside.start]);
                prop_assert_eq!(&found[inside.end..], &start[inside.end..]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "inner dimensions")]
    fn invalid_shapes_are_refused() {
        let (mut out, a, b) = ([0.0; 4], [0.0; 4], [0.0; 6]);
        matmul(
            MatrixMut::row_major(&mut out, 2, 2),
            false,
            MatrixRef::row_major(&a, 2, 2),
            MatrixRef::row_major(&b, 3, 2),
            1,
        );
    }

    #[test]
    #[should_panic(expected = "columns 1..4 of 3")]
    fn missing_columns_are_refused() {
        let _ = MatrixRef::columns(&[0.0; 6], (2, 3), 1..4);
    }

    #[test]
    #[should_panic(expected = "a 2 x 3 matrix")]
    fn matrix_lengths_are_checked() {
        let _ = MatrixRef::row_major(&[0.0; 5], 2, 3);
    }
}
