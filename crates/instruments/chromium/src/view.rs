//! A page to be looked at: shown in a window of some size, and asked by scripts.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Error;
use crate::devtools::{DevTools, Event};
use crate::load::{Address, text};

/// Widths below this are phones', whose browsers keep to a page's own viewport.
const PHONE: u32 = 600;
/// Most of what a console says that is kept.
const MOST: usize = 100;

/// A page that is looked at, by a browser that runs: to be used on its node's thread.
pub struct View {
    devtools: DevTools,
    errors: Vec<String>,
}

impl View {
    /// Connects to a browser's DevTools, and opens an empty page.
    ///
    /// # Errors
    /// DevTools cannot be reached, or does not answer as it should.
    pub async fn begin(address: Address) -> Result<View, Error> {
        let mut devtools = DevTools::connect(&address.0).await?;
        let command = "Target.createTarget";
        let made = devtools.browser(command, json!({ "url": "about:blank" })).await?;
        let target = text(&made, command, "targetId")?;
        let command = "Target.attachToTarget";
        let params = json!({ "targetId": target, "flatten": true });
        let session = text(&devtools.browser(command, params).await?, command, "sessionId")?;
        devtools.use_session(Some(session));
        for command in ["Page.enable", "Runtime.enable", "Log.enable"] {
            devtools.page(command, json!({})).await?;
        }
        Ok(View { devtools, errors: Vec::new() })
    }

    /// Shows a page in a window of `width` and `height` CSS pixels, and waits for its load event; how long
    /// that took.
    ///
    /// # Errors
    /// As [`View::begin`]; [`Error::Late`] if it does not come.
    pub async fn show(
        &mut self,
        url: &str,
        [width, height]: [u32; 2],
        limit: Duration,
    ) -> Result<Duration, Error> {
        let phone = width < PHONE;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone,
        });
        self.devtools.page("Emulation.setDeviceMetricsOverride", metrics).await?;
        let began = Instant::now();
        self.devtools.begin("Page.navigate", json!({ "url": url })).await?;
        while let Some(event) = self.devtools.event(began + limit).await? {
            if event.0 == "Page.loadEventFired" {
                return Ok(began.elapsed());
            }
            self.note(&event);
        }
        Err(Error::Late { command: "Page.navigate", limit })
    }

    /// Shows pages as they are printed, without scroll bars, or as on a screen again.
    ///
    /// # Errors
    /// As [`View::begin`].
    pub async fn on_paper(&mut self, paper: bool) -> Result<(), Error> {
        let media = if paper { "print" } else { "screen" };
        self.devtools.page("Emulation.setEmulatedMedia", json!({ "media": media })).await?;
        self.devtools.page("Emulation.setScrollbarsHidden", json!({ "hidden": paper })).await?;
        Ok(())
    }

    /// What a script's last expression comes to, as JSON; a promise is awaited.
    ///
    /// # Errors
    /// As [`View::begin`]; [`Error::Refused`] if the script throws.
    pub async fn ask(&mut self, script: &str) -> Result<Value, Error> {
        let command = "Runtime.evaluate";
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.devtools.page(command, params).await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            return Err(Error::Refused { command, why: brief(thrown) });
        }
        Ok(answer
            .get_mut("result")
            .and_then(|result| result.get_mut("value"))
            .map_or(Value::Null, Value::take))
    }

    /// Errors of the page that its console has shown so far: what a script threw, what was refused.
    ///
    /// # Errors
    /// As [`View::begin`].
    pub async fn errors(&mut self) -> Result<&[String], Error> {
        // Everything before the answer to this is there by then.
        self.ask("0").await?;
        while let Some(event) = self.devtools.event(Instant::now()).await? {
            self.note(&event);
        }
        Ok(&self.errors)
    }

    fn note(&mut self, (name, params): &Event) {
        let is_error = match name.as_str() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => params["type"] == "error",
            "Log.entryAdded" => params["entry"]["level"] == "error",
            _ => false,
        };
        if is_error && self.errors.len() < MOST {
            self.errors.push(brief(params));
        }
    }
}

/// A stranger's words for a message.
fn brief(value: &Value) -> String {
    fault::excerpt(&value.to_string(), 400)
}
