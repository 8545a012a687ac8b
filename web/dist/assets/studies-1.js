const state = document.getElementById("state");

function row(study) {
  const cells = [study.name, study.state === "STUDY_STATE_FINISHED" ? "finished" : "active",
                 study.best_value ?? "none yet", study.counts?.completed ?? 0];
  const line = document.createElement("tr");
  for (const cell of cells) line.appendChild(document.createElement("td")).textContent = cell;
  return line;
}

async function show() {
  const answer = await fetch("/api/StudyService/ListStudies",
                             {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"});
  const said = await answer.json();
  if (!answer.ok) {
    state.textContent = said.message;
    return;
  }
  const studies = said.studies ?? [];
  state.textContent = studies.length === 0 ? "There is no study. Create one: hpo study create FILE" : "";
  document.getElementById("studies").replaceChildren(...studies.map(row));
}

show().catch((error) => { state.textContent = `The server does not answer: ${error.message}`; });
const changes = new EventSource("/api/events");
changes.addEventListener("studies", () => { show(); });
