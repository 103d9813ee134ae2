// JSX-like templates without a build step. Values are always text: nothing here sets innerHTML.
import { h, render, Fragment } from "../vendor/preact/preact.js";
import htm from "../vendor/htm/htm.js";

export { render, Fragment };
export { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../vendor/preact/hooks.js";
export const html = htm.bind(h);
