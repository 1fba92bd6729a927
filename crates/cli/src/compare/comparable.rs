//! What of two results can be compared: values of one kind, measured alike.

use fault::{Fault, Problem};
use record::{Better, Clock, Environment, Manifest, ValueKind};
use serde_json::{Value, json};
use study::Study;

use super::cells::Side;
use crate::studies::STUDIES;

/// A value of a study that is compared.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    pub study: &'static str,
    pub value: String,
    pub kind: ValueKind,
}

impl Compared {
    pub(super) fn json(&self) -> Value {
        json!({ "study": self.study, "value": self.value, "kind": self.kind })
    }
}

/// What is compared of each study that both results have: `value`, or the study's first.
pub(super) fn compared(
    before: &Side,
    after: &Side,
    value: Option<&str>,
) -> Result<Vec<Compared>, Problem> {
    let mut found = Vec::new();
    for study in STUDIES {
        let has = |side: &Side| side.cells.contains_key(study.name());
        if !(has(before) && has(after)) {
            continue;
        }
        let Some((name, kind)) = compared_value(*study, value) else { continue };
        let kind = one_kind(study.name(), name, &kind, &before.manifest, &after.manifest)?;
        found.push(Compared { study: study.name(), value: name.to_owned(), kind });
    }
    if found.is_empty() {
        let measured = !(before.cells.is_empty() || after.cells.is_empty());
        let (fault, what) = match value {
            _ if !measured => (Fault::Measurement, "one of the results has no sample".to_owned()),
            Some(value) => {
                let what = format!("no study that both results have measures `{value}`");
                (Fault::Caller, what)
            }
            None => (Fault::Results, "the two results have no study in common".to_owned()),
        };
        return Err(Problem::new(fault, what).with_remedy("compare runs of one plan"));
    }
    for one in &found {
        measured_alike(one, &before.manifest, &after.manifest)?;
    }
    Ok(found)
}

/// The value of a study that is compared: the one of this name, or its first.
pub(super) fn compared_value(
    study: &dyn Study,
    value: Option<&str>,
) -> Option<(&'static str, ValueKind)> {
    study.values().into_iter().find(|(name, _)| value.is_none_or(|value| *name == value))
}

/// The kind that both manifests give the value; results from before manifests had kinds have the
/// study's own.
fn one_kind(
    study: &str,
    value: &str,
    own: &ValueKind,
    before: &Manifest,
    after: &Manifest,
) -> Result<ValueKind, Problem> {
    let recorded =
        |manifest: &Manifest| manifest.values.get(study).and_then(|of| of.get(value)).cloned();
    let (was, is) = (recorded(before), recorded(after));
    let (was, is) = (was.as_ref().unwrap_or(own), is.as_ref().unwrap_or(own));
    if was.clock != is.clock || was.unit != is.unit {
        return Err(refused(&format!(
            "`{value}` was measured in other ways: {}, then {}",
            shown(was),
            shown(is)
        )));
    }
    if is.better == Better::Neither {
        let what = format!("`{value}` is neither better nor worse when it changes");
        return Err(Problem::new(Fault::Caller, what).with_remedy("choose another --value"));
    }
    Ok(is.clone())
}

fn shown(kind: &ValueKind) -> String {
    let clock = match kind.clock {
        Clock::Wall => "by the machine's clock",
        Clock::Virtual => "in virtual time",
        Clock::Count => "counted",
    };
    if kind.unit.is_empty() { clock.to_owned() } else { format!("{} {clock}", kind.unit) }
}

/// Refuses what only looks comparable: other backends of links, and, of values that the machine's clock
/// measured, other kinds of machine.
fn measured_alike(what: &Compared, before: &Manifest, after: &Manifest) -> Result<(), Problem> {
    const BACKEND: &str = "link backend";
    let backend = |manifest: &Manifest| manifest.libraries.get(BACKEND).cloned();
    if let (Some(was), Some(is)) = (backend(before), backend(after))
        && was != is
    {
        return Err(refused(&format!("their links were carried by {was}, then by {is}")));
    }
    if what.kind.clock != Clock::Wall {
        return Ok(());
    }
    let machine = |manifest: &Manifest| {
        manifest.sessions.first().map(|session| kind_of_machine(&session.environment))
    };
    match (machine(before), machine(after)) {
        (Some(was), Some(is)) if was != is => {
            Err(refused(&format!("they were measured on {was}, then on {is}")))
        }
        _ => Ok(()),
    }
}

/// What must be the same for times to be comparable: not the kernel, whose change may be the question.
fn kind_of_machine(machine: &Environment) -> String {
    let processors = machine.cpus.map_or_else(|| "?".to_owned(), |cpus| cpus.to_string());
    let virtual_machine = if machine.hypervisor.is_some() { ", virtual" } else { "" };
    let model = machine.cpu_model.as_deref().unwrap_or("an unknown processor");
    let architecture = machine.architecture.as_str();
    format!("{model} ({architecture}, {processors} processors{virtual_machine})")
}

fn refused(why: &str) -> Problem {
    Problem::new(Fault::Results, format!("the two results cannot be compared: {why}"))
        .with_remedy("measure both in the same way on one machine; counts compare across machines")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Session;

    fn manifest(change: impl FnOnce(&mut Manifest)) -> Manifest {
        let mut manifest = Manifest::new(json!({}), Session::begin(false));
        change(&mut manifest);
        manifest
    }

    fn of(clock: Clock) -> Compared {
        let kind = ValueKind::new("ms", Better::Less, clock);
        Compared { study: "demo", value: "ready_ms".to_owned(), kind }
    }

    #[test]
    fn another_machine_matters_to_its_clock_alone() {
        let here = manifest(|_| ());
        let there = manifest(|manifest| {
            manifest.sessions[0].environment.cpu_model = Some("Another 9000".to_owned());
        });
        let problem = measured_alike(&of(Clock::Wall), &here, &there).unwrap_err().to_string();
        assert!(problem.contains("then on Another 9000"), "{problem}");
        for clock in [Clock::Virtual, Clock::Count] {
            assert!(measured_alike(&of(clock), &here, &there).is_ok());
        }
        let newer = manifest(|manifest| {
            manifest.sessions[0].environment.kernel = Some("99.0".to_owned());
        });
        assert!(measured_alike(&of(Clock::Wall), &here, &newer).is_ok());
    }

    #[test]
    fn links_of_two_backends_are_not_compared() {
        let by = |name: &str| {
            manifest(|manifest| {
                manifest.libraries.insert("link backend".to_owned(), name.to_owned());
            })
        };
        assert!(measured_alike(&of(Clock::Count), &by("veth"), &by("veth")).is_ok());
        let problem = measured_alike(&of(Clock::Count), &by("veth"), &by("tap")).unwrap_err();
        assert!(problem.to_string().contains("carried by veth, then by tap"), "{problem}");
    }

    #[test]
    fn two_clocks_are_not_compared() {
        let own = ValueKind::new("ms", Better::Less, Clock::Wall);
        let recorded = |clock| {
            manifest(|manifest| {
                let kind = ValueKind::new("ms", Better::Less, clock);
                let values = [("ready_ms".to_owned(), kind)].into();
                manifest.values.insert("demo".to_owned(), values);
            })
        };
        let old = manifest(|_| ());
        let kind = |a: &Manifest, b: &Manifest| one_kind("demo", "ready_ms", &own, a, b);
        assert_eq!(kind(&old, &recorded(Clock::Wall)).unwrap(), own);
        let problem = kind(&old, &recorded(Clock::Virtual)).unwrap_err().to_string();
        assert!(problem.contains("by the machine's clock, then ms in virtual time"), "{problem}");
    }
}
