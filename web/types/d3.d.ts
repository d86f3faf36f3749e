// The part of D3 5 (Debian's node-d3 has no types) that the page uses.

interface Selection {
  append(name: string): Selection;
  attr(name: string, value: unknown): Selection;
  classed(name: string, value: unknown): Selection;
  data(data: unknown, key?: unknown): Selection;
  datum(datum: unknown): Selection;
  each(call: (this: Element, datum: any, index: number) => void): Selection;
  html(value: null): string;
  join(enter: string): Selection;
  node(): any;
  on(event: string, call: ((datum: any, index: number) => void) | null): Selection;
  property(name: string, value: unknown): Selection;
  remove(): Selection;
  select(selector: string): Selection;
  selectAll(selector: string): Selection;
  style(name: string, value: unknown): Selection;
  text(value: unknown): Selection;
}

declare module "d3-selection" {
  export function select(target: Element | string): Selection;
  export const event: any;
}

declare module "d3-interpolate" {
  export function interpolateRgb(a: string, b: string): (t: number) => string;
  export function piecewise(
    interpolate: (a: string, b: string) => (t: number) => string,
    values: string[],
  ): (t: number) => string;
}

declare module "d3-array" {
  export function max(values: Iterable<number>): number | undefined;
  export function range(count: number): number[];
  export function sum(values: Iterable<number>): number;
}
