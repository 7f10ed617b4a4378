// Shows times in the viewer's zone, refreshes the live view, and focuses the search field on "/".
"use strict";

const formats = {
  moment: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }),
  hourly: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" }),
  // Days and months begin at midnight UTC: in another zone they would have the name of the day before.
  daily: new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" }),
  monthly: new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric", timeZone: "UTC" }),
};

function localize(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.textContent = formats.moment.format(new Date(time.dateTime));
  }
  for (const label of root.querySelectorAll("[data-time]")) {
    label.textContent = formats[label.dataset.window].format(new Date(label.dataset.time));
  }
  for (const axis of root.querySelectorAll("[data-axis]")) {
    if (axis.parentNode.querySelector("[data-window=hourly]")) {
      axis.textContent = axis.textContent.replace("UTC", zone);
    }
  }
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const note of document.querySelectorAll("[data-zone]")) {
  note.textContent = `Times are in ${zone}; hover for UTC`;
}
localize(document);

const live = document.querySelector("[data-live]");
if (live) {
  const state = document.querySelector("[data-live-state]");
  const pause = document.querySelector("[data-live-pause]");
  // Browsers connect again by themselves when a stream ends, but not after a response other than 200.
  const REOPEN_MS = 5000;
  let source = null;
  let reopening = null;
  const show = (text, name) => {
    state.textContent = text;
    state.dataset.state = name;
  };
  const open = () => {
    source = new EventSource(live.dataset.live);
    source.addEventListener("bucket", (event) => {
      live.innerHTML = event.data;
      localize(live);
      show("Live, once a second", "live");
    });
    source.addEventListener("error", (event) => {
      if (event.target !== source) return;
      show("Disconnected: the server is not responding", "away");
      if (source.readyState === EventSource.CLOSED) reopening = setTimeout(open, REOPEN_MS);
    });
    pause.textContent = "Pause";
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    if (source) {
      clearTimeout(reopening);
      source.close();
      source = null;
      pause.textContent = "Resume";
      show("Paused", "paused");
    } else {
      open();
    }
  });
  open();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  const search = document.getElementById("search");
  if (event.key === "/" && !typing && search) {
    event.preventDefault();
    search.focus();
  }
});
