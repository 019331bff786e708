"""Elementary functions: one line says what each library calls one.

A name is looked up in the library's modules in turn. ``=`` means that it is the same as the name before.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    numpy: str
    torch: str
    jax: str
    tensorflow: str
    internal: bool  # not an operator of ONNX on its own


def _read(table: str) -> dict[str, Function]:
    functions = {}
    for line in table.strip().splitlines():
        name, *names = line.split()
        for place, each in enumerate(names):
            if each == "=":
                names[place] = names[place - 1]
        numpy, torch, jax, tensorflow = names
        functions[name.removeprefix("*")] = Function(numpy, torch, jax, tensorflow, name.startswith("*"))
    return functions


FUNCTIONS = _read("""
Abs             abs               =                    =                   =
Acos            arccos            acos                 arccos              acos
Acosh           arccosh           acosh                arccosh             acosh
Add             add               =                    =                   =
And             logical_and       =                    =                   =
Asin            arcsin            asin                 arcsin              asin
Asinh           arcsinh           asinh                arcsinh             asinh
Atan            arctan            atan                 arctan              atan
Atanh           arctanh           atanh                arctanh             atanh
BitwiseAnd      bitwise_and       =                    =                   bitwise.bitwise_and
BitwiseNot      invert            bitwise_not          invert              bitwise.invert
BitwiseOr       bitwise_or        =                    =                   bitwise.bitwise_or
BitwiseXor      bitwise_xor       =                    =                   bitwise.bitwise_xor
Ceil            ceil              =                    =                   =
Cos             cos               =                    =                   =
Cosh            cosh              =                    =                   =
Equal           equal             eq                   equal               =
Erf             erf               =                    =                   =
Exp             exp               =                    =                   =
Floor           floor             =                    =                   =
Greater         greater           gt                   greater             =
GreaterOrEqual  greater_equal     ge                   greater_equal       =
IsNaN           isnan             =                    =                   is_nan
Less            less              lt                   less                =
LessOrEqual     less_equal        le                   less_equal          =
Log             log               =                    =                   =
Mul             multiply          mul                  multiply            =
Neg             negative          neg                  negative            =
Not             logical_not       =                    =                   =
Or              logical_or        =                    =                   =
Reciprocal      reciprocal        =                    =                   =
Relu            relu              =                    =                   =
Round           rint              round                =                   =
Sigmoid         expit             sigmoid              =                   =
Sign            sign              =                    =                   =
Sin             sin               =                    =                   =
Sinh            sinh              =                    =                   =
Softplus        softplus          =                    =                   =
Softsign        softsign          =                    soft_sign           softsign
Sqrt            sqrt              =                    =                   =
Sub             subtract          sub                  subtract            =
Tan             tan               =                    =                   =
Tanh            tanh              =                    =                   =
Xor             logical_xor       =                    =                   =
*Expm1          expm1             =                    =                   =
*FlooredModulo  mod               remainder            mod                 floormod
*IntegerDivision truncated_division truncated_division  truncated_division  truncatediv
*IsInfinite     isinf             =                    =                   is_inf
*Maximum        maximum           =                    =                   =
*Minimum        minimum           =                    =                   =
*Power          power             pow                  power               pow
*ShiftLeft      left_shift        bitwise_left_shift   left_shift          shift_left
*ShiftRight     right_shift       bitwise_right_shift  right_shift         shift_right
*TruncatedModulo fmod             =                    =                   truncated_modulo
""")
