//! Memory of dropped arrays, for the next ones.
//!
//! An account transforms many arrays of the same few lengths. New memory for each of them costs more than the transforms: the
//! operating system provides it page by page.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use realfft::num_complex::Complex64;

/// Arrays that wait for their next use.
pub(crate) struct Pool<T: 'static>(Mutex<Vec<Vec<T>>>);

/// Arrays of real numbers, such as masses of a distribution.
pub(crate) static REALS: Pool<f64> = Pool::new();
/// Arrays of complex numbers, such as values of a transform.
pub(crate) static COMPLEX: Pool<Complex64> = Pool::new();

/// Maximum number of waiting arrays, and the maximum length of each.
const WAITING: usize = 16;
const MAX_LENGTH: usize = 1 << 18;

impl<T: Copy + Default> Pool<T> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// An array of zeros.
    pub(crate) fn zeros(&'static self, count: usize) -> Pooled<T> {
        let mut array = self.any(count);
        array.fill(T::default());
        array
    }

    /// An array of arbitrary values.
    pub(crate) fn any(&'static self, count: usize) -> Pooled<T> {
        let mut waiting = self.waiting();
        let fits = (0..waiting.len()).filter(|&place| waiting[place].capacity() >= count);
        let smallest = fits.min_by_key(|&place| waiting[place].capacity());
        let mut values = smallest.map(|place| waiting.swap_remove(place)).unwrap_or_default();
        drop(waiting);
        values.resize(count, T::default());
        Pooled { values, pool: self }
    }
}

impl<T> Pool<T> {
    fn waiting(&self) -> MutexGuard<'_, Vec<Vec<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An array whose memory is used again after it is dropped.
pub(crate) struct Pooled<T: 'static> {
    values: Vec<T>,
    pool: &'static Pool<T>,
}

impl<T> Deref for Pooled<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        let mut waiting = self.pool.waiting();
        if waiting.len() < WAITING && self.values.capacity() <= MAX_LENGTH {
            waiting.push(std::mem::take(&mut self.values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        static POOL: Pool<f64> = Pool::new();
        let mut first = POOL.zeros(100);
        first[99] = 1.0;
        let address = first.as_ptr();
        drop(first);
        let second = POOL.zeros(100);
        assert!(second.as_ptr() == address && second.iter().all(|&value| value == 0.0));
        assert_eq!((POOL.any(20).len(), second.len()), (20, 100));
    }

    #[test]
    fn few_and_short_arrays_wait() {
        static POOL: Pool<f64> = Pool::new();
        drop((0..2 * WAITING).map(|_| POOL.zeros(10)).collect::<Vec<_>>());
        assert_eq!(POOL.waiting().len(), WAITING);
        drop(POOL.zeros(MAX_LENGTH + 1));
        assert!(POOL.waiting().iter().all(|array| array.capacity() <= MAX_LENGTH));
    }
}
