import { html } from './html.js'; export const Plan = () => html`<p>Plan</p>`;
