//! Matrix product over slices; a safe interface to the `gemm-f32` crate.
#![allow(unsafe_code)]

use gemm_common::Parallelism;

/// A dense read-only matrix: row-major, or the transpose of a row-major one.
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
        assert_eq!(data.len(), element_count(rows, cols), "a {rows} x {cols} matrix");
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
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

/// A dense, writable row-major matrix.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    cols: usize,
}

impl<'a> MatrixMut<'a> {
    /// Views `data` as a row-major matrix of `rows` x `cols`.
    ///
    /// # Panics
    /// Panics if `data` does not hold exactly `rows * cols` floats.
    pub fn row_major(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), element_count(rows, cols), "a {rows} x {cols} matrix");
        Self { data, rows, cols }
    }
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
    let MatrixMut { data, rows, cols } = out;
    assert_eq!(lhs.cols, rhs.rows, "inner dimensions");
    assert_eq!((rows, cols), (lhs.rows, rhs.cols), "outer dimensions");
    // The kernel prefers a destination with contiguous columns. For a row-major destination, this is the transposed
    // product, (rhs^T lhs^T)^T. A column vector is contiguous in both orders.
    let (m, n, strides) = if cols > 1 { (cols, rows, (cols, 1)) } else { (rows, cols, (1, cols)) };
    let (a, b) = if cols > 1 { (rhs.transposed(), lhs.transposed()) } else { (lhs, rhs) };
    // SAFETY: the constructor of each of the three matrices checked that its slice holds exactly rows * cols
    // elements, and the strides are (cols, 1) or, transposed, (1, rows), so every element that gemm addresses lies
    // inside the slice. `out` is borrowed mutably, so it overlaps neither operand. A stride fits isize because a
    // slice never exceeds isize::MAX bytes. With `accumulate` off, gemm does not read `out`, which is initialised in
    // any case.
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
    #[should_panic(expected = "a 2 x 3 matrix")]
    fn matrix_lengths_are_checked() {
        let _ = MatrixRef::row_major(&[0.0; 5], 2, 3);
    }
}
