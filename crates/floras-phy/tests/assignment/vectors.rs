//! The published vectors, and the documents that quote them.

use super::*;

fn vectors_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn vectors(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(vectors_dir().join(file)).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(file["vectors"].take()).unwrap()
}

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn array<const LEN: usize>(value: &Value) -> [u8; LEN] {
    hex(value).try_into().unwrap()
}

fn numbers(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn vector_key(vector: &Value) -> GroupKey {
    let epoch = Epoch(vector["epoch"].as_u64().unwrap().try_into().unwrap());
    GroupKey::from_secret_bytes(GroupId(array(&vector["group"])), epoch, &array(&vector["group_key"]))
}

fn vector_order(key: &GroupKey, vector: &Value) -> Vec<u32> {
    let sequences = vector["sequences"].as_u64().unwrap().try_into().unwrap();
    order(key, vector["slot"].as_u64().unwrap(), sequences)
}

#[test]
fn permutations_are_those_of_the_published_vectors() {
    let vectors = vectors("assignment.json");
    assert!(vectors.iter().any(|vector| vector["skipped_words"] != 0));
    for vector in vectors {
        let order = vector_order(&vector_key(&vector), &vector);
        let start = numbers(&vector["permutation_start"]);
        assert!(order.starts_with(&start), "{vector}");
        let bytes: Vec<u8> = order.into_iter().flat_map(u32::to_be_bytes).collect();
        assert_eq!(Sha256::digest(bytes)[..], hex(&vector["permutation_sha256"]), "{vector}");
    }
}

#[test]
fn a_key_sealed_by_other_software_opens() {
    for vector in vectors("sealed_key.json") {
        let key = vector_key(&vector);
        let client = ClientIdentity::from_secret_bytes(&array(&vector["client_private"]));
        assert_eq!(client.public_key().to_bytes(), array(&vector["client_public"]));
        let dealer = PublicKey::from_bytes(array(&vector["dealer_public"]));

        let sealed = SealedKey::from_bytes(&hex(&vector["sealed_key"])).unwrap();
        assert_eq!(sealed.to_bytes()[..], hex(&vector["sealed_key"]));
        let opened = client.open(&sealed, &dealer, key.group(), key.epoch()).unwrap();

        assert_eq!(vector_order(&opened, &vector), numbers(&vector["permutation"]));
    }
}

#[test]
fn the_python_script_makes_the_same_vectors() {
    let script = vectors_dir().join("assignment.py");
    match Command::new("python3").arg(script).arg("--check").status() {
        Ok(status) => assert!(status.success()),
        Err(error) => eprintln!("skipped, as python3 does not start: {error}"),
    }
}

#[test]
fn the_documented_example_is_the_first_vector() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/assignment-format.md");
    let Ok(document) = std::fs::read_to_string(path) else {
        eprintln!("skipped, as the crate is built without the workspace's documents");
        return;
    };
    let vector = &vectors("assignment.json")[0];
    for field in ["group_key", "group", "stream_key", "permutation_sha256"] {
        assert!(document.contains(vector[field].as_str().unwrap()), "{field}");
    }
    let entries: Vec<String> = numbers(&vector["permutation_start"]).iter().map(u32::to_string).collect();
    assert!(document.contains(&entries.join(" ")));
    let sealed = &vectors("sealed_key.json")[0];
    assert!(document.contains(sealed["sealed_key"].as_str().unwrap()));
}
