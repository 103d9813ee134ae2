import { html } from './html.js'; export const Places = () => html`<p>Places</p>`;
