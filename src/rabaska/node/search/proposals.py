"""The values of the next trial: by grid, at random or by Sobol, without asking anybody."""

import random
from typing import Any, Dict, List, Optional

from . import sobol
from . import space as spaces
from .study import Settings

GRID, RANDOM, SOBOL, TPE, CMA = "grid", "random", "sobol", "tpe", "cma-es"
METHODS = (GRID, RANDOM, SOBOL, TPE, CMA)
BY_OPTUNA = (TPE, CMA)


def values_of(settings: Settings, number: int) -> Optional[Dict[str, Any]]:
    """Those of trial `number`, from 1 on: a function of it and the seed. None: there is none."""
    if settings.method == GRID:
        points = _grid(settings)
        return points[number - 1] if number <= len(points) else None
    count = len(settings.space)
    if settings.method == SOBOL and count <= sobol.DIMENSIONS:
        return spaces.at(settings.space, sobol.point(number, count, settings.seed))
    drawn = random.Random("{}/{}".format(settings.seed, number))
    return spaces.at(settings.space, [drawn.random() for _ in range(count)])


_grids: Dict[str, List[Dict[str, Any]]] = {}


def _grid(settings: Settings) -> List[Dict[str, Any]]:
    key = repr(settings.given)
    if key not in _grids:
        _grids[key] = spaces.grid(settings.space)
    return _grids[key]
