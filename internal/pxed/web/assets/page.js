"use strict";
// The page is rendered by pxed. This script puts the pieces that the stream brings
// in their place, and sends what the operator orders to the API.

const $ = (id) => document.getElementById(id);
const maxEvents = 40;

// ---- the operator's token: for this tab only, and sent to the API only

const token = () => sessionStorage.getItem("token") || "";

function showActions(root) {
  for (const b of root.querySelectorAll("button[data-act]")) b.hidden = !token();
}

$("token-form").addEventListener("submit", async (e) => {
  e.preventDefault();
  const value = $("token").value.trim();
  const answer = await fetch("/api/v1/status", { headers: { Authorization: "Bearer " + value } });
  if (!answer.ok) {
    sessionStorage.removeItem("token");
    link("lost", "this token does not work");
    $("token").select();
  } else {
    sessionStorage.setItem("token", value);
    $("token").value = "";
    link("live", "live, may operate");
  }
  showActions(document);
});

// ---- times: pxed writes UTC, the reader gets local time

function localTimes(root) {
  for (const t of root.querySelectorAll("time")) {
    const at = new Date(t.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    t.textContent = at.toLocaleTimeString([], { hour12: false });
    t.title = at.toLocaleString();
  }
}

// ---- pieces

function parse(html) {
  const t = document.createElement("template");
  t.innerHTML = html;
  const el = t.content.firstElementChild;
  localTimes(el);
  showActions(el);
  return el;
}

function putMachine({ name, html }) {
  const fresh = parse(html);
  const old = $(name);
  if (!old) {
    $("machines").append(fresh);
    return;
  }
  // What the reader has opened stays open, what has the focus keeps it.
  for (const d of old.querySelectorAll("details[open]")) {
    const same = fresh.querySelector(`details[data-keep="${d.dataset.keep}"]`);
    if (same) same.open = true;
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(fresh);
  if (!focused) return;
  const again = focused.dataset.act
    ? fresh.querySelector(`[data-act="${focused.dataset.act}"]`)
    : fresh.querySelector(`details[data-keep="${focused.parentElement.dataset.keep}"] > summary`);
  (again || $("machines")).focus({ preventScroll: true });
}

function putOrder(names) {
  const list = $("machines");
  if (names.every((name, i) => list.children[i]?.id === name)) return;
  const focused = document.activeElement;
  list.append(...names.map($).filter(Boolean));
  if (list.contains(focused)) focused.focus({ preventScroll: true });
}

function putEvent({ name, html }) {
  if ($(name)) return;
  const list = $("events");
  list.prepend(parse(html));
  while (list.children.length > maxEvents) list.lastElementChild.remove();
}

// ---- the stream; the browser itself takes it up again after a cut

function link(kind, text) {
  $("link").className = "link " + kind;
  $("link").textContent = text;
}

const stream = new EventSource("/page/stream");
stream.addEventListener("open", () => link("live", token() ? "live, may operate" : "live"));
stream.addEventListener("error", () => link("lost", "pxed does not answer, trying again"));
stream.addEventListener("machine", (e) => putMachine(JSON.parse(e.data)));
stream.addEventListener("event", (e) => putEvent(JSON.parse(e.data)));
stream.addEventListener("order", (e) => putOrder(JSON.parse(e.data)));
stream.addEventListener("gone", (e) => $(JSON.parse(e.data).name)?.remove());

// ---- arming and disarming, confirmed by typing the node's name

let order = null; // {act, node}

document.addEventListener("click", (e) => {
  const b = e.target.closest("button[data-act]");
  if (b?.dataset.act === "wake") wake(b);
  else if (b) ask(b.dataset.act, b.dataset.node, b.closest("article"));
});

// ---- waking destroys nothing: it is done at once, and only a failure is told; that
// the machine was called is among the events

async function wake(button) {
  const node = button.dataset.node;
  button.disabled = true;
  const problem = await send("wake", node, {});
  button.disabled = false;
  if (!problem) return;
  $("notice-title").textContent = `${node} was not called`;
  $("notice-text").textContent = problem;
  $("notice").showModal();
}

function ask(act, node, card) {
  order = { act, node };
  const arm = act === "arm";
  $("order").reset();
  $("dialog-title").textContent = `${act} ${node}`;
  $("dialog-text").textContent = arm
    ? `When ${node} next boots from the network, its system disk is overwritten, once.`
    : `${node} boots its own disk again. An install that is under way is stopped and leaves a disk that does not boot.`;
  $("arming").hidden = !arm;
  $("arming").disabled = !arm;
  $("overwrite").replaceChildren();
  const disks = card.querySelector("template[data-disks]");
  if (arm && disks) $("overwrite").append(disks.content.cloneNode(true));
  $("dialog-name").textContent = node;
  $("go").textContent = act;
  $("go").disabled = true;
  $("problem").hidden = true;
  $("dialog").showModal();
  $("confirm").focus();
}

$("confirm").addEventListener("input", () => { $("go").disabled = $("confirm").value !== order.node; });
$("cancel").addEventListener("click", () => $("dialog").close());

$("order").addEventListener("submit", async (e) => {
  e.preventDefault();
  if ($("confirm").value !== order.node) return;
  $("go").disabled = true;
  const problem = await send(order.act, order.node, body());
  $("go").disabled = false;
  $("problem").hidden = !problem;
  $("problem").textContent = problem;
  if (!problem) $("dialog").close();
});

function body() {
  if (order.act !== "arm") return {};
  const out = { seconds: Number($("expires").value) };
  const disks = [...$("overwrite").querySelectorAll("input:checked")].map((i) => i.value);
  if (disks.length) out.overwrite = disks;
  if ($("data").value) out.data = $("data").value;
  if ($("sanitize").value) out.sanitize = $("sanitize").value;
  return out;
}

// send gives the reason why not, or "".
async function send(act, node, body) {
  try {
    const answer = await fetch(`/api/v1/nodes/${encodeURIComponent(node)}/${act}`, {
      method: "POST",
      headers: { Authorization: "Bearer " + token(), "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.ok) return "";
    const why = await answer.json();
    return why.hint ? `${why.error} (${why.hint})` : why.error;
  } catch {
    return "pxed does not answer";
  }
}

localTimes(document);
showActions(document);
