// The page under test: the built package, nothing else. The tests call it through `window`.
import * as resubmit from "/dist/index.js";

window.resubmit = resubmit;
window.open_ = (options) => (window.outbox = resubmit.createOutbox(options));
