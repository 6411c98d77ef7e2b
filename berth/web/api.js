// SPDX-License-Identifier: Apache-2.0
/**
 * The public API, with the caller's own rights. Credentials go to this origin only, and only into
 * headers.
 * @module
 */

/** @typedef {{user?: string, password?: string, token?: string}} Credentials */

/** The service, whatever prefix a proxy serves it under: the page is at PREFIX/berth/ui/. */
const ROOT = new URL("../../", document.baseURI);

const KEPT = "berth.credentials";

/** Seconds for which an answer may take; explanations may ask the service for thirty. */
const ANSWER_S = 60;

/** Milliseconds before a service that cannot answer is asked again; doubled up to the last. */
const PAUSES = [500, 1000, 2000, 4000, 8000];

/** Why a request was not answered as hoped. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 if there was no answer
   * @param {string} detail
   * @param {string} [code]
   * @param {string} [pointer]
   * @param {string[]} [suggestions] instead of a name that is unknown
   */
  constructor(status, detail, code = "", pointer = "", suggestions = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.pointer = pointer;
    this.suggestions = suggestions;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Speaks to the service, and remembers who speaks. */
export class Api extends EventTarget {
  /** @type {Credentials | null} */
  #credentials = null;
  /** Whether the service has accepted them. */
  #isAccepted = false;
  /** The service's `auth_strategy`. */
  strategy = "";
  /** @type {Record<string, any>} */
  about = {};
  /** Why the caller may not do something, by the rule of the policy. @type {Map<string, string>} */
  forbidden = new Map();
  /** The caller's project, by the rules that allow no other. @type {Map<string, string>} */
  projects = new Map();

  /** Ask the service for its version and for how to sign in. */
  async introduce() {
    const about = await this.get("berth/v1");
    this.about = about;
    this.strategy = about.auth_strategy;
    this.#credentials = this.strategy === "noauth2" ? { token: "admin" } : kept();
    if (this.#credentials) await this.readRights().catch(() => undefined);
    this.#isAccepted = this.#credentials !== null;
  }

  get isSignedIn() {
    return this.#isAccepted;
  }

  get user() {
    return this.#credentials?.user ?? "";
  }

  /**
   * @param {Credentials} credentials
   * @param {boolean} keep until the tab is closed, reloads included
   */
  async signIn(credentials, keep) {
    this.#credentials = credentials;
    try {
      await this.readRights();
    } catch (error) {
      // 403: who it is was accepted; what they may do is each view's business.
      if (!(error instanceof ApiError) || error.status !== 403) {
        this.#credentials = null;
        throw error;
      }
    }
    this.#isAccepted = true;
    if (keep) sessionStorage.setItem(KEPT, JSON.stringify(credentials));
  }

  /** Read what the caller may do. */
  async readRights() {
    /** @type {{permissions: Record<string, {allowed: boolean, reason?: string, project_id?: string}>}} */
    const { permissions } = await this.get("berth/v1/permissions");
    this.forbidden.clear();
    this.projects.clear();
    for (const [rule, { allowed, reason = "", project_id: project }] of Object.entries(permissions)) {
      if (!allowed) this.forbidden.set(rule, reason);
      if (project) this.projects.set(rule, project);
    }
  }

  /** The filter without which a rule does not allow the caller a list. @param {string} rule @returns {Record<string, string>} */
  scope(rule) {
    const project = this.projects.get(rule);
    return project === undefined ? {} : { project_id: project };
  }

  signOut() {
    this.#credentials = null;
    this.#isAccepted = false;
    this.forbidden.clear();
    this.projects.clear();
    sessionStorage.removeItem(KEPT);
  }

  /** @param {string} path */
  get(path) {
    return this.json("GET", path);
  }

  /**
   * @param {string} path
   * @param {unknown} body
   * @param {AbortSignal} [signal] the answer is no longer wanted
   */
  post(path, body, signal) {
    return this.json("POST", path, body, signal);
  }

  /**
   * The JSON of an answer.
   *
   * @param {string} method
   * @param {string} path below the service, without a slash at the beginning
   * @param {unknown} [body]
   * @param {AbortSignal} [signal] the answer is no longer wanted
   * @param {boolean} [isNew] whether nothing may be replaced
   * @returns {Promise<any>}
   */
  async json(method, path, body, signal, isNew = false) {
    const limit = new Limit(ANSWER_S, signal);
    try {
      const response = await this.#answer(method, path, limit.signal, body, isNew);
      if (response.status === 204) return null;
      return parsed(await response.text());
    } catch (error) {
      throw limit.judged(error);
    } finally {
      limit.end();
    }
  }

  /**
   * Create or replace something, as its preview showed it.
   *
   * @param {string} path
   * @param {unknown} body
   * @param {boolean} replaces whether the preview showed what it replaces; else nothing may be there
   */
  put(path, body, replaces) {
    return this.json("PUT", path, body, undefined, !replaces);
  }

  /** @param {string} path */
  async text(path) {
    const limit = new Limit(ANSWER_S);
    try {
      return await (await this.#answer("GET", path, limit.signal)).text();
    } catch (error) {
      throw limit.judged(error);
    } finally {
      limit.end();
    }
  }

  /**
   * The lines of an answer of JSON lines, parsed, in portions as they arrive.
   *
   * @param {string} path
   * @param {AbortSignal} [signal] nobody wants them any more
   * @param {number} [seconds] for which the service may be silent
   * @returns {AsyncGenerator<any[]>}
   */
  async *lines(path, signal, seconds = ANSWER_S) {
    const limit = new Limit(seconds, signal);
    try {
      const response = await this.#answer("GET", path, limit.signal);
      if (!response.body) return;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        limit.begin();
        const { done, value } = await reader.read();
        // What is done with the lines is no silence of the service.
        limit.end();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop() ?? "";
        yield lines.filter(Boolean).map(parsed);
      }
      if (rest.trim()) yield [parsed(rest)];
    } catch (error) {
      throw limit.judged(error);
    } finally {
      limit.end();
    }
  }

  /**
   * The items of a list of JSON lines, as many as are wanted.
   *
   * @param {string} path
   * @param {Record<string, string>} filters
   * @param {number} limit
   * @param {AbortSignal} [signal] the answer is no longer wanted
   * @returns {Promise<{items: any[], isCut: boolean}>}
   */
  async first(path, filters, limit, signal) {
    const items = [];
    let isCut = false;
    for await (const lines of this.lines(`${path}?${new URLSearchParams({ ...filters, limit: String(limit) })}`, signal)) {
      for (const line of lines) {
        if (line.end) isCut = line.more === true;
        else items.push(line);
      }
    }
    return { items, isCut };
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {AbortSignal} signal
   * @param {unknown} [body]
   * @param {boolean} [isNew]
   */
  async #answer(method, path, signal, body, isNew = false) {
    /** @type {RequestInit} */
    const init = {
      method,
      headers: { ...this.#headers(body !== undefined), ...(isNew && { "if-none-match": "*" }) },
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
      signal,
    };
    if (body !== undefined) init.body = JSON.stringify(body);
    const credentials = this.#credentials;
    const response = await fetch(new URL(path, ROOT), init);
    if (response.ok) return response;
    const error = await refusal(response);
    if (error.status === 401 && this.#isAccepted && this.#credentials === credentials) {
      this.signOut();
      this.dispatchEvent(new Event("expired"));
    }
    throw error;
  }

  /** @param {boolean} hasBody */
  #headers(hasBody) {
    /** @type {Record<string, string>} */
    const headers = { accept: "application/json, application/jsonl", "openstack-api-version": "placement 1.39" };
    if (hasBody) headers["content-type"] = "application/json";
    const { user, password, token } = this.#credentials ?? {};
    if (token !== undefined) headers["x-auth-token"] = token;
    if (user !== undefined) headers.authorization = `Basic ${base64(`${user}:${password ?? ""}`)}`;
    return headers;
  }
}

/**
 * Wait before asking again.
 *
 * @param {number} attempt from 0
 */
export function pause(attempt) {
  const wait = PAUSES[Math.min(attempt, PAUSES.length - 1)];
  return new Promise((resolve) => setTimeout(resolve, wait));
}

/** @returns {Credentials | null} */
function kept() {
  const text = sessionStorage.getItem(KEPT);
  return text ? JSON.parse(text) : null;
}

/** Ends a request whose answer takes too long, or that nobody wants any more. */
class Limit {
  #controller = new AbortController();
  #timer = 0;
  #seconds;
  #wanted;

  /**
   * @param {number} seconds
   * @param {AbortSignal} [wanted] aborted by the caller
   */
  constructor(seconds, wanted) {
    this.#seconds = seconds;
    this.#wanted = wanted;
    this.signal = wanted ? AbortSignal.any([wanted, this.#controller.signal]) : this.#controller.signal;
    this.begin();
  }

  /** Count from now. */
  begin() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#controller.abort(), 1000 * this.#seconds);
  }

  end() {
    clearTimeout(this.#timer);
  }

  /**
   * What an error means: browsers have many words for "no answer".
   *
   * @param {unknown} error
   */
  judged(error) {
    if (error instanceof ApiError || this.#wanted?.aborted) return error;
    return new ApiError(0, "The service does not answer.");
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(0, "The answer is not the service's: a proxy may have sent it.");
  }
}

/** @param {Response} response */
async function refusal(response) {
  const text = await response.text().catch(() => "");
  try {
    const [error] = JSON.parse(text).errors;
    // Behind the status in words stands what is wrong here.
    const detail = error.detail.trim().split("\n\n").pop().trim();
    return new ApiError(response.status, detail, error.code, error.pointer, error.did_you_mean);
  } catch {
    return new ApiError(response.status, `The answer was ${`${response.status} ${response.statusText}`.trim()}.`);
  }
}

/** @param {string} text */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
