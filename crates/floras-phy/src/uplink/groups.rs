//! Sums over clients whose contributions are computed in parallel, and are not kept.

use rayon::iter::IndexedParallelIterator;
use rayon::prelude::*;

/// Number of clients whose contributions are added before the sums of groups are. It does not depend on the number of threads, and so
/// neither does the rounding of the sum.
const GROUP: usize = 8;

/// Adds the contributions of clients, `size` numbers each, on the threads of the current `rayon` pool. `add` adds that of one client
/// to a sum. It can use a workspace, which `workspace` makes once for each group. Returns the sum and what `add` returns for each client.
pub(super) fn add_in_groups<T: Send, W, R: Send>(
    clients: impl IndexedParallelIterator<Item = T>,
    size: usize,
    workspace: impl Fn() -> W + Sync,
    add: impl Fn(T, &mut W, &mut [f32]) -> R + Sync,
) -> (Vec<f32>, Vec<R>) {
    let groups: Vec<(Vec<f32>, Vec<R>)> = clients
        .chunks(GROUP)
        .map(|group| {
            let (mut workspace, mut sum) = (workspace(), vec![0.0; size]);
            let returned = group.into_iter().map(|client| add(client, &mut workspace, &mut sum)).collect();
            (sum, returned)
        })
        .collect();
    let mut groups = groups.into_iter();
    let (mut sum, mut returned) = groups.next().unwrap_or_else(|| (vec![0.0; size], Vec::new()));
    for (of_group, others) in groups {
        sum.iter_mut().zip(of_group).for_each(|(sum, value)| *sum += value);
        returned.extend(others);
    }
    (sum, returned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_threads() {
        let updates = crate::updates::random_updates(30, 50);
        let sum = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let add = |update: &Vec<f32>, calls: &mut usize, sum: &mut [f32]| {
                *calls += 1;
                sum.iter_mut().zip(update).for_each(|(sum, x)| *sum += x);
                (update[0], *calls)
            };
            pool.install(|| add_in_groups(updates.par_iter(), 50, || 0, add))
        };
        let (alone, returned) = sum(1);
        assert_eq!(sum(3), (alone.clone(), returned.clone()));
        let exact = |place: usize| updates.iter().map(|update| f64::from(update[place])).sum::<f64>();
        assert!(alone.iter().enumerate().all(|(place, x)| (f64::from(*x) - exact(place)).abs() < 1e-5));
        let expected: Vec<(f32, usize)> =
            updates.iter().enumerate().map(|(k, update)| (update[0], k % GROUP + 1)).collect();
        assert_eq!(returned, expected);
    }
}
