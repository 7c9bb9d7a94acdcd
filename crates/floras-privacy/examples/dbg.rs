use floras_privacy::*;
struct U<'a>(&'a AnyChannel, bool);
impl Curve for U<'_> {
    fn upper(&self, e: f64) -> f64 {
        if self.1 { self.0.upper(e) } else { self.0.lower(e) }
    }
    fn lower(&self, e: f64) -> f64 {
        self.upper(e)
    }
    fn infinite(&self) -> f64 {
        0.0
    }
    fn is_rounded(&self) -> bool {
        false
    }
    fn tolerance(&self) -> f64 {
        1e-10
    }
}
fn main() {
    let a = AnyChannel::new(Receiver::Clipped(1.0), 20, 2.0).unwrap();
    for e in [0.1, 1.0, 3.0, 6.0, 10.0, 20.0] {
        println!("{e} {} {}", a.upper(e), a.lower(e));
    }
    let law = a.law_at(3.0);
    for t in [2u64, 10, 100] {
        for p in [0.1, 1.0] {
            let s = Sampling::ReplaceOne(p);
            println!("T={t} p={p} any {:?}", Composition::new(&a, s, t).unwrap().epsilon(1e-5));
            println!("   upper only {:?}", Composition::new(&U(&a, true), s, t).unwrap().epsilon(1e-5));
            println!("   lower only {:?}", Composition::new(&U(&a, false), s, t).unwrap().epsilon(1e-5));
            println!("   law at 3 {:?}", Composition::new(&law, s, t).unwrap().epsilon(1e-5));
        }
    }
}
