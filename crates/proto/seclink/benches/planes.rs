//! Frames of 1000 bytes, sealed and opened in place. Beside them the cipher alone: what a data plane cannot beat.

use std::hint::black_box;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use seclink::macsec::{
    Association, Confidentiality, Naming, Receive, ReceiveAssociation, Suite, Transmit,
    TransmitAssociation, Validation,
};
use seclink::{Secret, Slot, esp, wireguard};
use wire::macsec::Sci;

/// Bytes of a frame.
const FRAME: usize = 1000;
/// Room before and behind it.
const ROOM: usize = 64;
const SCI: Sci = Sci([2, 0, 0, 0, 0, 1, 0, 1]);

fn slot(buffer: &mut [u8], len: usize) -> Slot<'_> {
    Slot::new(buffer, ROOM..ROOM + len).expect("the buffer is longer")
}

fn association() -> Association {
    Association {
        number: 0,
        suite: Suite::GcmAes128,
        key: Secret::new(vec![1; 16]),
        extended: None,
        confidentiality: Confidentiality::All,
    }
}

fn cipher(criterion: &mut Criterion) {
    let key = UnboundKey::new(&AES_128_GCM, &[1; 16]).expect("a key of 16 bytes");
    let key = LessSafeKey::new(key);
    let mut group = criterion.benchmark_group("aes-128-gcm alone");
    group.throughput(Throughput::Elements(1));
    let mut text = vec![0; FRAME];
    group.bench_function("seal", |bencher| {
        let mut number = 0u64;
        bencher.iter(|| {
            number += 1;
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&number.to_be_bytes());
            let nonce = Nonce::assume_unique_for_key(nonce);
            black_box(key.seal_in_place_separate_tag(nonce, Aad::from(&[0; 28]), &mut text)).is_ok()
        });
    });
    group.finish();
}

fn macsec(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("macsec gcm-aes-128");
    group.throughput(Throughput::Elements(1));
    let mut transmit = Transmit::new(SCI, Naming::Explicit);
    transmit.install(TransmitAssociation::new(association(), SCI, 1).expect("a good key"));
    let mut buffer = vec![0; FRAME + 2 * ROOM];
    group.bench_function("seal", |bencher| {
        bencher.iter(|| {
            let mut slot = slot(&mut buffer, FRAME);
            transmit.seal(&mut slot).expect("a number is left");
            black_box(slot.len())
        });
    });
    let mut receive = Receive::new(Validation::Strict, None);
    receive.install(SCI, ReceiveAssociation::new(association(), SCI).expect("a good key"));
    let mut sealed = vec![0; FRAME + 2 * ROOM];
    let mut frame = slot(&mut sealed, FRAME);
    transmit.seal(&mut frame).expect("a number is left");
    let frame = frame.frame().to_vec();
    group.bench_function("copy and open", |bencher| {
        bencher.iter(|| {
            buffer[ROOM..ROOM + frame.len()].copy_from_slice(&frame);
            let mut slot = slot(&mut buffer, frame.len());
            black_box(receive.open(&mut slot))
        });
    });
    group.finish();
}

fn esp_planes(criterion: &mut Criterion) {
    for suite in esp::Suite::ALL {
        let parameters = || esp::Parameters {
            spi: 1,
            suite: *suite,
            key: Secret::new(vec![1; suite.key_material()]),
            extended: true,
        };
        let mut group = criterion.benchmark_group(format!("esp {suite}"));
        group.throughput(Throughput::Elements(1));
        let mut outbound = esp::Outbound::new(parameters()).expect("a good key");
        let mut buffer = vec![0; FRAME + 2 * ROOM];
        group.bench_function("seal", |bencher| {
            bencher.iter(|| {
                let mut slot = slot(&mut buffer, FRAME);
                outbound.seal(&mut slot, 4).expect("a number is left");
                black_box(slot.len())
            });
        });
        // Without a window, so that one packet can be opened again and again.
        let mut inbound = esp::Inbound::new(parameters(), None).expect("a good key");
        let mut first = esp::Outbound::new(parameters()).expect("a good key");
        let mut sealed = vec![0; FRAME + 2 * ROOM];
        let mut packet = slot(&mut sealed, FRAME);
        first.seal(&mut packet, 4).expect("a number is left");
        let packet = packet.frame().to_vec();
        group.bench_function("copy and open", |bencher| {
            bencher.iter(|| {
                buffer[ROOM..ROOM + packet.len()].copy_from_slice(&packet);
                let mut slot = slot(&mut buffer, packet.len());
                black_box(inbound.open(&mut slot))
            });
        });
        group.finish();
    }
}

fn wireguard_plane(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wireguard");
    group.throughput(Throughput::Elements(1));
    let mut sender = wireguard::Sender::new(1, Secret::new(vec![1; 32])).expect("a good key");
    let mut buffer = vec![0; FRAME + 2 * ROOM];
    group.bench_function("seal", |bencher| {
        bencher.iter(|| {
            let mut slot = slot(&mut buffer, FRAME);
            sender.seal(&mut slot).expect("a counter is left");
            black_box(slot.len())
        });
    });
    group.finish();
}

criterion_group!(benches, cipher, macsec, esp_planes, wireguard_plane);
criterion_main!(benches);
