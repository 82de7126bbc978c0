import {x} from './y';
/** doc */
@Dec()
export abstract class Foo<T> extends Bar {
  private a: number = 1;
  constructor(private b: string) { super(); }
  abstract go(): void;
  static run = async () => { await this.b(); }
  get size() { return 1 }
}
export const useThing = (a: number) => { return a };
export interface I { m(): void; p: string }
export default function App() { return null }
enum E { A, B = 2 }
namespace N.M { export const q = 1; export function z() {} }
declare module "foo" { function ff(): void }
type T = string;
