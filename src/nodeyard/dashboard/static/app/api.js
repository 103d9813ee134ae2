// Requests to the server. A failure is an ApiError with a sentence and what to do about it.
export class ApiError extends Error {
  constructor(status, message, remedy = "", body = {}) {
    super(message);
    this.status = status;
    this.remedy = remedy;
    this.body = body;
  }
}

const STATUS_TEXT = {
  401: ["You are not signed in, or the session has ended.", "Open the address that `nodeyard dashboard` printed again, or sign in."],
  403: ["You may not see this.", "Ask for the ClusterRole nodeyard-reader."],
  404: ["The server does not know this.", "The page may be newer than the operator; reload it."],
};

export async function errorOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // a proxy may answer without JSON
  }
  const [message, remedy] = STATUS_TEXT[response.status] ?? [`The server answered ${response.status}.`, "Try again; the log of the server says more."];
  return new ApiError(response.status, body.error?.message || message, body.error?.remedy || remedy, body);
}

export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, cache: "no-store", headers: { Accept: "application/json", ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server did not answer.", "Check that `nodeyard dashboard` still runs and that the network is up.");
  }
  if (!response.ok) throw await errorOf(response);
  return response.json();
}

export const query = (path, params) => {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") search.set(key, value);
  }
  return `${path}?${search}`;
};

export const get = (path, params = {}, signal = undefined) => request(query(`/api/v1/${path}`, params), { signal });

export const post = (path, body, type = "application/json") =>
  request(`/api/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": type },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
