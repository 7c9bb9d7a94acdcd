use floras_privacy::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let p: f64 = a[1].parse().unwrap();
    let t: u64 = a[2].parse().unwrap();
    let n: usize = a[3].parse().unwrap();
    let law = Law::HalfNormal { scale: 0.4 };
    for _ in 0..n {
        let e = Composition::new(&law, Sampling::ReplaceOne(p), t)
            .unwrap()
            .on_grid(Grid::Step(1e-4))
            .unwrap()
            .epsilon(1e-5)
            .unwrap();
        std::hint::black_box(e);
    }
}
