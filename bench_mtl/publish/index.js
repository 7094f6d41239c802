// The list can be read without this script, which leaves in it what is chosen.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const form = document.getElementById("find");
  const search = form.querySelector("input");
  const choices = [...form.querySelectorAll("select")];
  const cards = [...document.querySelectorAll(".suite-card")].map((element) => ({
    element,
    text: element.textContent.toLowerCase(),
    of: Object.fromEntries(choices.map(({ dataset }) => [dataset.of, JSON.parse(element.dataset[dataset.of])])),
  }));

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { element, text, of } of cards) {
      const fits = words.every((word) => text.includes(word)) && choices.every(({ value, dataset }) => !value || of[dataset.of].includes(value));
      element.hidden = !fits;
      shown += fits;
    }
    form.querySelector(".count").textContent = `${shown} of ${cards.length} shown`;
  }

  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  show(); // a browser may have kept what was chosen
})();
