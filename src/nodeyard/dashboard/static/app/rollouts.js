import { html } from './html.js'; export const Rollouts = () => html`<p>Rollouts</p>`;
