//! Options from outside: what is taken, and that what is wrong names its field.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{record, Json};
use resubmit::engine::error::Code;
use resubmit::engine::{OnParked, OutboxOptions, Policy, SubmitOptions};
use serde_json::{json, Value};

fn outbox(value: Value) -> Result<OutboxOptions, String> {
    OutboxOptions::read(&Json(value)).map_err(|error| {
        assert_eq!(error.code(), Code::BadOption);
        error.message().to_owned()
    })
}

fn outbox_of(options: Value) -> OutboxOptions {
    OutboxOptions::read(&Json(options)).unwrap()
}

#[test]
fn a_header_to_persist_is_named_in_any_case() {
    let options = outbox(json!({ "persistHeaders": ["X-Tenant", "x-locale"] })).unwrap();
    assert_eq!(options.persist_headers, ["x-tenant", "x-locale"]);
    assert!(options.may_persist("x-tenant"));
    for secret in ["Authorization", "COOKIE", "x-csrf-token", "X-XSRF-TOKEN"] {
        let error = outbox(json!({ "persistHeaders": [secret] })).unwrap_err();
        assert!(error.starts_with("options.persistHeaders: "), "{error}");
    }
}

#[test]
fn a_bad_option_names_the_field() {
    for (value, field) in [
        (json!(null), "options"),
        (json!("name"), "options"),
        (json!({ "name": "" }), "options.name"),
        (json!({ "name": 1 }), "options.name"),
        (json!({ "owner": 1 }), "options.owner"),
        (json!({ "policy": "eager" }), "options.policy"),
        (
            json!({ "policy": { "maxAttempts": 0 } }),
            "options.policy.maxAttempts",
        ),
        (json!({ "keyFormat": "base64" }), "options.keyFormat"),
        (json!({ "keyHeader": "" }), "options.keyHeader"),
        (json!({ "keyHeader": "a b" }), "options.keyHeader"),
        (
            json!({ "persistHeaders": "x-tenant" }),
            "options.persistHeaders",
        ),
        (json!({ "maxBodyBytes": -1 }), "options.maxBodyBytes"),
        (json!({ "storage": "disk" }), "options.storage"),
        (
            json!({ "onMaybeDelivered": "hope" }),
            "options.onMaybeDelivered",
        ),
        (json!({ "isDelivered": [] }), "options.isDelivered"),
        (
            json!({ "isDelivered": { "statuses": [500] } }),
            "options.isDelivered.statuses",
        ),
        (
            json!({ "isDelivered": { "status": [200] } }),
            "options.isDelivered.status",
        ),
        (json!({ "retentionMs": -1 }), "options.retentionMs"),
        (json!({ "retries": 3 }), "options.retries"),
    ] {
        let error = outbox(value.clone()).unwrap_err();
        assert!(error.starts_with(&format!("{field}: ")), "{value}: {error}");
    }
}

/// Better no promise than one that is not kept.
#[test]
fn what_is_to_come_is_refused_by_name() {
    for name in ["seal", "responseLimitBytes"] {
        let error = outbox(json!({ name: 1 })).unwrap_err();
        assert!(error.starts_with(&format!("options.{name}: ")), "{error}");
    }
}

fn submit(options: Value) -> Result<SubmitOptions, String> {
    SubmitOptions::read(&Json(options), &Policy::patient()).map_err(|error| error.to_string())
}

#[test]
fn a_submissions_own_acknowledgement_comes_before_the_outboxs() {
    let read = |options| submit(options).unwrap();
    let mut row = record(Policy::patient());
    row.is_delivered = outbox_of(json!({ "isDelivered": { "header": "X-A" } })).is_delivered;
    let mut own = row.clone();
    read(json!({})).apply(&mut row);
    assert_eq!(row.is_delivered.unwrap().header_name(), Some("X-A"));
    read(json!({ "isDelivered": { "statuses": [201] } })).apply(&mut own);
    assert_eq!(own.is_delivered.unwrap().statuses, [201]);
}

#[test]
fn lanes_are_named() {
    for (name, value) in [("lane", ""), ("coalesceKey", ""), ("onParked", "wait")] {
        let error = submit(json!({ name: value })).unwrap_err();
        assert!(
            error.contains(&format!("options.{name}: expected")),
            "{error}"
        );
    }
    let lane = |options| {
        let mut row = record(Policy::patient());
        submit(options).unwrap().apply(&mut row);
        (row.lane, row.on_parked, row.coalesce_key)
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(lane(json!({})), (None, OnParked::Hold, None));
    assert_eq!(
        lane(json!({ "lane": "a" })),
        (some("a"), OnParked::Hold, None)
    );
    // A newer one brings what a parked one would have said.
    assert_eq!(
        lane(json!({ "coalesceKey": "c" })),
        (some("c"), OnParked::Skip, some("c"))
    );
    let both = json!({ "lane": "a", "coalesceKey": "c" });
    assert_eq!(lane(both), (some("a"), OnParked::Hold, some("c")));
    let all = json!({ "lane": "a", "coalesceKey": "c", "onParked": "skip" });
    assert_eq!(lane(all), (some("a"), OnParked::Skip, some("c")));
}
