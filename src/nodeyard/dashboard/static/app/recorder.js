import { html } from './html.js'; export const Recorder = () => html`<p>Recorder</p>`;
