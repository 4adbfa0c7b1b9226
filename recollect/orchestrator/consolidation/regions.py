"""Names of large regions, which hold the towns that a text may name instead of them."""

from __future__ import annotations

_NAMES = (
    "africa|america|antarctica|asia|australia|europe|oceania|scandinavia|the balkans|argentina|"
    "austria|bangladesh|belgium|brazil|britain|bulgaria|california|canada|chile|china|colombia|"
    "croatia|cuba|cyprus|czechia|denmark|egypt|england|estonia|ethiopia|finland|florida|france|"
    "georgia|germany|ghana|great britain|greece|hungary|iceland|india|indonesia|iran|iraq|ireland|"
    "israel|italy|japan|jordan|kenya|korea|latvia|lebanon|lithuania|malaysia|mexico|mongolia|"
    "morocco|nepal|netherlands|new zealand|nigeria|north america|norway|pakistan|peru|philippines|"
    "poland|portugal|romania|russia|saudi arabia|scotland|serbia|singapore|slovakia|slovenia|"
    "south africa|south america|south korea|spain|sri lanka|sweden|switzerland|taiwan|tanzania|"
    "texas|thailand|the eu|the european union|the netherlands|the philippines|the states|the uk|"
    "the united kingdom|the united states|the us|the usa|tunisia|turkey|uganda|uk|ukraine|"
    "united kingdom|united states|uruguay|us|usa|venezuela|vietnam|wales|bavaria|catalonia|quebec"
)
REGIONS = frozenset(_NAMES.split("|"))


def is_region(text: str) -> bool:
    """Whether a text is nothing but the name of a country, a continent or the like."""
    return text.strip(" .!").casefold() in REGIONS
