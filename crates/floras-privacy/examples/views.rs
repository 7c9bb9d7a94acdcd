use floras_privacy::*;
use std::time::Instant;
fn main() {
    for (c, g, any, strong, simple) in [
        (1.0, 20u64, 6.01, 1.95, 7.63),
        (1.0, 108, 2.08, 0.76, 2.58),
        (2.0, 20, 7.55, 3.88, 9.09),
        (2.0, 108, 2.61, 1.50, 3.12),
        (3.0, 108, 3.41, 2.34, 3.93),
        (3.0, 236, 2.13, 1.51, 2.47),
    ] {
        let s = Instant::now();
        let a = AnyChannel::new(Receiver::Clipped(c), g, 2.0).unwrap();
        let t1 = s.elapsed();
        let e = Composition::new(&a, Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap();
        let t2 = s.elapsed();
        let st = Composition::new(a.strong_client(), Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap();
        let sb = simple_bound(c, g, 2.0).unwrap();
        let sb = Composition::new(&sb, Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap();
        println!("c={c} g={g} any {any} {e:?} strong {strong} {st:?} simple {simple} {sb:?}  {t1:?} {t2:?}");
    }
    let s = Instant::now();
    let a = AnyChannel::new(Receiver::Paper, 10, 2.0).unwrap();
    let e = Composition::new(&a, Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap();
    println!("paper 10: {e:?} {:?}", s.elapsed());
    let s = Instant::now();
    let a = AnyChannel::new(Receiver::Mmse, 20, 2.0).unwrap();
    let e = Composition::new(&a, Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap();
    println!("mmse 20: {e:?} {:?}", s.elapsed());
    for (snr, modu, rec, g, want) in [
        (20.0, "real", Receiver::Paper, 10u64, 14.3),
        (20.0, "real", Receiver::Paper, 108, 3.96),
        (20.0, "real", Receiver::Clipped(1.0), 10, 5.8),
        (20.0, "real", Receiver::Clipped(1.0), 20, 3.6),
        (20.0, "real", Receiver::Clipped(2.0), 44, 3.04),
        (20.0, "pc", Receiver::Paper, 10, 5.2),
        (20.0, "pc", Receiver::Clipped(1.0), 10, 4.03),
        (20.0, "pc", Receiver::Clipped(2.0), 20, 4.15),
        (0.0, "pc", Receiver::Paper, 200, 3.55),
        (0.0, "pc", Receiver::Clipped(1.0), 44, 2.76),
    ] {
        let l = (20 + g) as f64;
        let sd = (10f64.powf(-snr / 10.0) / l).sqrt();
        let s = Instant::now();
        let co = if modu == "real" {
            Coefficients::normal(sd, 0.5f64.sqrt()).unwrap()
        } else {
            Coefficients::from_density(sd, 8.0, |x| x * (-x * x).exp()).unwrap()
        };
        let law = co.actual(rec, 20, g, 2.0).unwrap();
        let t1 = s.elapsed();
        let e = Composition::new(&law, Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap();
        println!("{snr} {modu} {rec:?} {g} want {want} got {e:?} {t1:?} {:?}", s.elapsed());
    }
    let s = Instant::now();
    let a = AnyChannel::new(Receiver::Clipped(1.0), 20, 2.0).unwrap();
    for t in [10, 100, 1000] {
        let e = Composition::new(&a, Sampling::ReplaceOne(0.1), t).unwrap().epsilon(1e-5).unwrap();
        println!("any T={t} p=.1 {e:?} {:?}", s.elapsed());
    }
    let s = Instant::now();
    let a = AnyChannel::new(Receiver::Paper, 5, 2.0).unwrap();
    for t in [10, 100, 1000] {
        let e = Composition::new(&a, Sampling::ReplaceOne(0.1), t).unwrap().epsilon(1e-5);
        println!("any paper T={t} p=.1 {e:?} {:?}", s.elapsed());
    }
}
