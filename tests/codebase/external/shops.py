"""A shop in two languages, and the indexes that scip-typescript 0.4.0 and scip-python 0.6.6 made of it."""

from pathlib import Path

HERE = Path(__file__).parent

TYPESCRIPT = {
    "src/till.ts": "export class Till {\n  pay(sum: number) { return sum }\n}\nexport class Bank {\n"
    "  pay(sum: number) { return -sum }\n}\ntype Chosen<T> = T extends string ? Till : Bank\n"
    "export declare function choose<T>(by: T): Chosen<T>\n",
    "src/use.ts": "import { Till as Drawer, Bank, choose } from './till'\nexport function all(drawer: Drawer, anything: any) {\n"
    "  drawer.pay(1)\n  new Bank().pay(2)\n  choose('the drawer').pay(3)\n  return anything.pay(4)\n}\n",
    "tsconfig.json": '{"compilerOptions":{"strict":true},"include":["src"]}\n',
}
TYPESCRIPT_INDEX = (HERE / "shop_typescript.scip").read_bytes()

PYTHON = {
    "till.py": "class Till:\n    def pay(self, sum: int) -> int:\n        return sum\n\n\nclass Bank:\n"
    '    def pay(self, sum: int) -> int:\n        return -sum\n\n\nDESKS = {name: Till() for name in "ab"}\n',
    "use.py": "from till import DESKS, Bank, Till as Drawer\n\n\ndef all(drawer: Drawer, anything):\n    drawer.pay(1)\n"
    "    Bank().pay(2)\n    max(DESKS.values(), key=id).pay(3)\n    anything.pay(4)\n",
}
PYTHON_INDEX = (HERE / "shop_python.scip").read_bytes()
