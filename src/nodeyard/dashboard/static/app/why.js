import { html } from './html.js'; export const Why = () => html`<p>Why</p>`;
