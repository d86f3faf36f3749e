// What is picked. Every view draws from it, and asks it to change; then all views draw again.

/**
 * @typedef {import("./model.js").Picture} Picture
 * @typedef {import("./strings.js").Language} Language
 * @typedef {(state: State) => void} View
 */

export class State {
  /**
   * @param {Picture} picture
   * @param {number} scale the weight of the darkest colour
   */
  constructor(picture, scale) {
    this.picture = picture;
    this.scale = scale;
    this.layer = 0;
    this.head = 0;
    /** @type {number | null} */
    this.pinned = null;
    /** @type {number | null} */
    this.hovered = null;
    /** @type {"from" | "to"} */
    this.direction = "from";
    /** @type {Language} */
    this.language = "en";
    /** @type {View[]} views that depend on the token too */
    this.views = [];
  }

  /** The token to show: the one pointed at, else the one held. */
  get token() {
    return this.hovered ?? this.pinned;
  }

  get weights() {
    return this.picture.weights[this.layer][this.head];
  }

  /** @param {Partial<Pick<State, "layer" | "head" | "pinned" | "hovered" | "direction" | "language">>} change */
  set(change) {
    Object.assign(this, change);
    for (const view of this.views) view(this);
  }

  /** @param {number | null} token */
  hover(token) {
    if (token !== this.hovered) this.set({ hovered: token });
  }

  /**
   * Holds a token, or lets go of it.
   * @param {number} token
   */
  pin(token) {
    this.set({ pinned: this.pinned === token ? null : token });
  }

  /**
   * From a link: #layer=1&head=2&token=3&lang=zh, counted from 0.
   * @param {string} hash
   */
  restore(hash) {
    const wanted = new URLSearchParams(hash.replace(/^#/, ""));
    /**
     * @param {string} key
     * @param {number} count
     */
    const index = (key, count) => {
      const value = Number(wanted.get(key) ?? NaN);
      return Number.isInteger(value) && value >= 0 && value < count ? value : null;
    };
    this.layer = index("layer", this.picture.layers) ?? this.layer;
    this.head = index("head", this.picture.heads) ?? this.head;
    this.pinned = index("token", this.picture.tokens.length);
    if (wanted.get("direction") === "to") this.direction = "to";
    const language = wanted.get("lang");
    if (language === "zh" || language === "en") this.language = language;
  }
}
