//! Owners: whose intents a page shows and sends.
//!
//! Every row has one. The store keeps who is current, and what takes a row for an attempt reads that in its own
//! transaction: a page that has not heard of a change sends nothing in another's session.

use super::env::Env;
use super::lane;
use super::op::{Applied, Beside, Op};
use super::record::{Reason, Record};
use std::rc::Rc;

/// Whose intents these are. `None`: nobody is signed in, and nothing is sent or listed.
pub type Owner = Option<String>;

/// The owner where none was ever named.
pub const ANONYMOUS: &str = "anonymous";

/// Runs a transaction that would take a row for an attempt. Where another owner is current, which is then in
/// [`Applied::owner`], a new row is stored without a claim, so that nothing is lost, and no other is taken.
pub(super) fn apply(op: &Op, beside: Beside, row: Option<Rc<Record>>, env: &mut Env) -> Applied {
    let whose = match (op, &row) {
        (Op::Store(new), None) => Some(&new.owner),
        (Op::Claim(_), Some(row)) => Some(&row.owner),
        _ => None,
    };
    let another = beside
        .owner
        .clone()
        .filter(|current| whose.is_some_and(|whose| current.as_ref() != Some(whose)));
    let mut unclaimed = None;
    match (op, &another) {
        (Op::Store(new), Some(_)) => {
            let mut new = new.clone();
            let record = Rc::make_mut(&mut new);
            record.unclaim();
            record.hold(Reason::NotSent, env.wall);
            unclaimed = Some(Op::Store(new));
        }
        (_, Some(_)) => {
            return Applied {
                record: row,
                owner: another,
                ..Applied::default()
            };
        }
        (_, None) => {}
    }
    let op = unclaimed.as_ref().unwrap_or(op);
    Applied {
        owner: another,
        ..lane::apply(op, beside, row, env)
    }
}
